import { fitBind } from './bind.js';
import { error } from './errors.js';
import type { SessionHandler } from './handler.js';
import * as messages from './messages/extended.js';
import {
  commandComplete,
  emptyQueryResponse,
  noData,
  portalSuspended,
  rowDescription,
} from './messages/results.js';
import type { Output } from './output.js';
import type { OpenPortal, Portals, Statements } from './prepared.js';
import { runPortal } from './run-portal.js';

/** Parse, Bind, Describe, Execute and Close. Each answers its message or throws `WireError`. */
export class ExtendedQuery {
  readonly #handler: SessionHandler;
  readonly #output: Output;
  readonly #statements: Statements;
  readonly #portals: Portals;

  constructor(handler: SessionHandler, output: Output, statements: Statements, portals: Portals) {
    this.#handler = handler;
    this.#output = output;
    this.#statements = statements;
    this.#portals = portals;
  }

  async parse(body: Buffer): Promise<void> {
    const { name, text, parameterTypes } = messages.decodeParse(body);
    const bytes = body.length;
    this.#statements.reserve(name, bytes);
    const statement = await this.#handler.prepare(text, parameterTypes);
    this.#statements.add(name, { statement, bytes });
    messages.parseComplete(this.#output.messages);
  }

  async bind(body: Buffer): Promise<void> {
    const message = messages.decodeBind(body);
    const { statement } = this.#statements.get(message.statement);
    const bind = fitBind(message, statement);
    const bytes = body.length;
    this.#portals.reserve(message.portal, bytes);
    const portal = statement === null ? null : await statement.open(bind);
    const { resultFormats } = bind;
    this.#portals.add(message.portal, { statement, portal, resultFormats, bytes, finished: null });
    messages.bindComplete(this.#output.messages);
  }

  describe(body: Buffer): void {
    const { kind, name } = messages.decodeTarget(body, 'DESCRIBE');
    const out = this.#output.messages;
    const cursor = kind === 'portal' && name !== '' ? this.#handler.cursorColumns?.(name) : undefined;
    if (cursor !== undefined) {
      rowDescription(out, cursor, []);
      return;
    }
    const portal = kind === 'portal' ? this.#portals.get(name) : null;
    const { statement } = portal ?? this.#statements.get(name);
    if (portal === null) messages.parameterDescription(out, statement?.parameterTypes ?? []);
    const columns = statement?.columns ?? null;
    if (columns === null) noData(out);
    else rowDescription(out, columns, portal?.resultFormats ?? []);
  }

  async execute(body: Buffer): Promise<void> {
    const { portal: name, maxRows } = messages.decodeExecute(body);
    const out = this.#output.messages;
    const open = this.#portals.get(name);
    const { statement, portal } = open;
    if (statement === null || portal === null) return emptyQueryResponse(out);
    if (open.finished !== null) return commandComplete(out, tagOfFinished(open, open.finished, name));
    try {
      const { suspended, tag } = await runPortal(statement, portal, maxRows, this.#output);
      if (suspended) return portalSuspended(out);
      open.finished = tag;
      commandComplete(out, tag);
    } catch (cause) {
      this.#portals.drop(name);
      throw cause;
    }
  }

  close(body: Buffer): void {
    const { kind, name } = messages.decodeTarget(body, 'CLOSE');
    if (kind === 'statement') this.#statements.delete(name);
    else this.#portals.drop(name);
    messages.closeComplete(this.#output.messages);
  }
}

/** As in Postgres: a query that gave all its rows gives none again; a command cannot be run twice. */
function tagOfFinished(open: OpenPortal, tag: string, name: string): string {
  if (open.statement?.columns === null) throw error('55000', `portal "${name}" cannot be run`);
  return tag.replace(/^SELECT \d+$/, 'SELECT 0');
}
