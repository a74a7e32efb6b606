import { createMcpHandler } from '@modelcontextprotocol/server';
import { InternalError } from 'osl-compiler';
import type { RestParts } from '../rest/parts.js';
import { LocalEngine } from './local-engine.js';
import { createSemanticServer, type ToolOptions } from './tools.js';

export interface MessageHandler {
  /**
   * @param parsed the message's JSON; undefined if it is not JSON
   * @param rawArguments the tool call's arguments exactly as sent; null if parsing them loses no precision
   */
  answer(
    message: Request,
    parsed: unknown,
    engine: LocalEngine,
    rawArguments: string | null,
  ): Promise<Response>;
  close(): Promise<void>;
}

export function messageHandler({ log }: Pick<RestParts, 'log'>, options: ToolOptions): MessageHandler {
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const engine = authInfo?.extra?.['engine'];
      if (!(engine instanceof LocalEngine)) throw new InternalError('an MCP message was not let in');
      const rawArguments = authInfo?.extra?.['written'];
      const serverOptions =
        typeof rawArguments === 'string' ? { ...options, rawArguments: () => rawArguments } : options;
      return createSemanticServer(engine, serverOptions);
    },
    {
      maxSubscriptions: 0, // no subscriptions: the server has no changes to notify clients of
      onerror: (error) => log.warn('an MCP message failed', { error: error.message }),
    },
  );
  return {
    answer: (message, parsed, engine, rawArguments) =>
      handler.fetch(message, {
        parsedBody: parsed,
        authInfo: { token: '', clientId: '', scopes: [], extra: { engine, written: rawArguments } }, // the engine has the token
      }),
    close: () => handler.close(),
  };
}
