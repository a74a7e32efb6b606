import { createMcpHandler } from '@modelcontextprotocol/server';
import { InternalError } from 'osl-compiler';
import type { RestParts } from '../rest/parts.js';
import { LocalEngine } from './local-engine.js';
import { createSemanticServer, type ToolOptions } from './tools.js';

/** Answers messages that were let in. */
export interface MessageHandler {
  answer(message: Request, engine: LocalEngine): Promise<Response>;
  close(): Promise<void>;
}

export function messageHandler({ log }: Pick<RestParts, 'log'>, options: ToolOptions): MessageHandler {
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const engine = authInfo?.extra?.['engine'];
      if (!(engine instanceof LocalEngine)) throw new InternalError('an MCP message was not let in');
      return createSemanticServer(engine, options);
    },
    {
      maxSubscriptions: 0, // nothing here changes while a client listens
      onerror: (error) => log.warn('an MCP message failed', { error: error.message }),
    },
  );
  return {
    answer: (message, engine) =>
      handler.fetch(message, {
        authInfo: { token: '', clientId: '', scopes: [], extra: { engine } }, // the engine has the token
      }),
    close: () => handler.close(),
  };
}
