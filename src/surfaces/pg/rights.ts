import { queryError } from 'osl-compiler';
import type { SessionCaller } from './session-caller.js';
import type { SessionRecords } from './session-records.js';

/** Rights of one session, under which rows that wait for their client were decided. */
export class SessionRights {
  readonly #caller: SessionCaller;
  readonly #records: SessionRecords;

  constructor(caller: SessionCaller, records: SessionRecords) {
    this.#caller = caller;
    this.#records = records;
  }

  /** What the session may see now, as text. */
  get now(): string {
    return this.#caller.rights;
  }

  /** A later portion of rows is given under the rights of the first only. @throws WireError 55000 */
  requireSame(begun: string): void {
    if (begun !== this.now) throw this.#records.refusal(queryError('rightsChanged', {}));
  }
}
