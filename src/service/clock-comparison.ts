import { type ControlDatabase, ControlFault, databaseTime, shareClockOffset } from '../base/control/index.js';
import type { ServiceLog } from '../base/log.js';

/** Greatest difference in ms that is not a wrong clock. */
const TOLERANCE_MS = 60_000;
/** Longest duration in ms of a query whose answer still says what time it is. */
const SLOW_MS = 5_000;
const COMPARE_MS = 2_000;
/** SQLSTATEs of a database that answers and does not do it: no privilege, no such table, a server that only reads. */
const REFUSALS = /^(42|25|3F)/;

/**
 * Compares this machine's clock with that of the control database. A wrong clock makes tokens end too early or too late.
 *
 * A difference does not say which of the two clocks is wrong, so the other gateways decide: this one's is wrong if it is
 * the database's with which another gateway agrees. If none does, the database may be wrong, and all keep serving.
 */
export class ClockComparison {
  readonly #database: ControlDatabase;
  readonly #tenant: string;
  readonly #gateway: string;
  readonly #log: ServiceLog;
  #offsetMs: number | null = null;
  #wrong = false;
  #warned = false;
  #refused = false;
  #comparedAt = Number.NEGATIVE_INFINITY;

  /** @param gateway a name that no other gateway has */
  constructor(database: ControlDatabase, tenant: string, gateway: string, log: ServiceLog) {
    this.#database = database;
    this.#tenant = tenant;
    this.#gateway = gateway;
    this.#log = log;
  }

  /** Milliseconds by which this machine's clock is ahead of the database's; null before the first comparison. */
  get offsetMs(): number | null {
    return this.#offsetMs;
  }

  get wrong(): boolean {
    return this.#wrong;
  }

  /** Compares, unless that was done within the last seconds. @throws ControlFault if the database does not answer */
  async compareWhenDue(): Promise<void> {
    const now = performance.now();
    if (now - this.#comparedAt < COMPARE_MS) return;
    this.#comparedAt = now;
    await this.compare();
  }

  /** Compares now. If the database refuses, nothing changes. @throws ControlFault if it does not answer */
  async compare(): Promise<void> {
    try {
      const offsetMs = await this.#measure();
      if (offsetMs === null) return;
      const offset = { tenant: this.#tenant, gateway: this.#gateway, offsetMs };
      const agreeing = await shareClockOffset(this.#database, offset, TOLERANCE_MS);
      this.#offsetMs = offsetMs;
      this.#take(Math.abs(offsetMs) > TOLERANCE_MS, agreeing);
    } catch (error) {
      if (!(error instanceof ControlFault) || !REFUSALS.test(error.code ?? '')) throw error;
      if (!this.#refused) this.#log.warn('clocks are not compared', { cause: error.message });
      this.#refused = true;
    }
  }

  async #measure(): Promise<number | null> {
    const sent = performance.now();
    const databaseMs = await databaseTime(this.#database);
    const took = performance.now() - sent;
    return took > SLOW_MS ? null : Date.now() - took / 2 - databaseMs;
  }

  #take(far: boolean, agreeing: number): void {
    const wrong = far && agreeing > 0;
    const seconds = Math.round((this.#offsetMs ?? 0) / 1_000);
    if (wrong && !this.#wrong)
      this.#log.error(
        'the clock of this machine is wrong: /ready is 503 until it is right, since tokens end too early or too late',
        { seconds_ahead: seconds, agreeing_gateways: agreeing },
      );
    else if (far && !wrong && !this.#warned)
      this.#log.warn(
        'this machine and the control database have different times, and no other gateway says which one is right',
        { seconds_ahead: seconds },
      );
    else if (!far && (this.#wrong || this.#warned)) this.#log.warn('the clocks agree again');
    this.#warned = far && !wrong;
    this.#wrong = wrong;
  }
}
