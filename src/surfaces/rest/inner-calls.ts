import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const HEADER = 'osl-inner-call';
const MARK_BYTES = 32;

/**
 * Tells the calls that this server makes to itself, for its MCP tools, from those of others: they carry a mark that
 * was drawn when the server started and that leaves it only to reach it again. It names the surface in the log, and
 * nothing else; who asks is in the token, as of any call.
 */
export class InnerCalls {
  readonly #mark = randomBytes(MARK_BYTES);

  /** What such a call sends along. */
  get headers(): Readonly<Record<string, string>> {
    return { [HEADER]: this.#mark.toString('hex') };
  }

  isOurs(request: IncomingMessage): boolean {
    const mark = request.headers[HEADER];
    if (typeof mark !== 'string' || mark.length !== 2 * MARK_BYTES) return false;
    const given = Buffer.from(mark, 'hex');
    return given.length === MARK_BYTES && timingSafeEqual(given, this.#mark);
  }
}
