import { QueryError } from 'osl-compiler';
import { WireError } from '../../../wire/index.js';
import { type Call, type RequestParts, refusedCommand, sessionCommand } from '../../ask/index.js';
import { type Prepared, Unrun } from './unrun.js';
import { UnwritableRow } from './unwritable-row.js';
import { wireError } from './wire-error.js';

/** What of a session is counted and put on record, beyond what the spine records of its questions. */
export class SessionRecords {
  readonly unrun = new Unrun();
  readonly #service: RequestParts;
  readonly #newCall: () => Call;
  /** Errors whose refusal the spine has recorded. */
  readonly #recorded = new WeakSet<WireError>();
  /** Refusals of the surface in words of the catalogue, which are not on record yet. */
  readonly #refusals = new WeakMap<WireError, { readonly call: Call; readonly reason: QueryError }>();

  /** @param newCall gives a request of the session's caller, under an id of its own */
  constructor(service: RequestParts, newCall: () => Call) {
    this.#service = service;
    this.#newCall = newCall;
  }

  /** Runs what the spine does, and says its errors as the protocol does; they are on record then. */
  async translate<T>(requestId: string, text: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (failure) {
      throw this.say(failure, requestId, text);
    }
  }

  /** An error that the spine has recorded, as the protocol says it. */
  say(failure: unknown, requestId: string, text: string): unknown {
    const said =
      failure instanceof UnwritableRow
        ? failure.said
        : failure instanceof QueryError
          ? wireError(failure, requestId, text)
          : failure;
    if (said instanceof WireError) this.#recorded.add(said);
    return said;
  }

  /** An error that the surface refuses with; `recordFailure` puts it on record once its client was told. */
  refusal(reason: QueryError): WireError {
    const call = this.#newCall();
    const said = wireError(reason, call.requestId, '');
    this.#refusals.set(said, { call, reason });
    return said;
  }

  /** Until it runs, a statement that was prepared is one that `record` has still to put on record. */
  hold({ requestId }: Pick<Call, 'requestId'>, record: () => Promise<void>): Prepared {
    const prepared = { record: () => this.translate(requestId, '', record) };
    this.unrun.hold(prepared);
    return prepared;
  }

  /** Counts and records a statement that the gateway answers itself. @throws WireError */
  async admit(): Promise<void> {
    const call = this.#newCall();
    await this.translate(call.requestId, '', () => sessionCommand(this.#service, call));
  }

  /** What the spine did not refuse, the surface or the protocol did: it is recorded here. */
  recordFailure(failure: WireError): void {
    if (this.#recorded.has(failure)) return;
    const { call, reason } = this.#refusals.get(failure) ?? {
      call: this.#newCall(),
      reason: failure.sqlstate,
    };
    refusedCommand(this.#service, call, reason).catch((cause: unknown) => {
      this.#service.log.warn('a refusal was not recorded', {
        request_id: call.requestId,
        cause: String(cause),
      });
    });
  }
}
