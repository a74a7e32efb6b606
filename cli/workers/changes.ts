import type { ServiceLog } from '../../src/base/log.js';
import { Serial } from '../../src/base/serial.js';
import { messageOf } from '../../src/base/thrown.js';
import type { ReloadResult } from '../../src/service/reload/reload.js';
import type { ChangeRefusal, SupervisorProtocol, Texts, WorkerChangeRequest } from './messages.js';
import { type Handlers, PeerGone } from './messages.js';
import type { WorkerSlot } from './slot.js';

type ChangeRequestName = 'admit' | 'enter' | 'leave' | 'published' | 'draftChanged' | 'revoked';

const PREPARE_MS = 60_000;
/**
 * Time limit for preparing a change that may remove rights. A slower worker is killed, so that it does not keep
 * granting them.
 */
const POLICY_MS = 1_500;
/** Time limit for applying a prepared change, and for notices such as another worker's publication or revocation. */
const TAKE_MS = 1_000;

/** Applies changes to the served model in all workers or in none, one change at a time. */
export class WorkerChanges {
  readonly #slots: () => readonly WorkerSlot[];
  readonly #log: ServiceLog;
  readonly #turns = new Serial();
  #texts: Texts;
  /** Set while the current policy is missing, invalid or unknown; `since` in ms since 1970. */
  #broken: { readonly texts: Texts; readonly since: number } | null = null;
  #holder: { readonly slot: WorkerSlot; readonly release: () => void } | null = null;

  constructor(texts: Texts, slots: () => readonly WorkerSlot[], log: ServiceLog) {
    this.#texts = texts;
    this.#slots = slots;
    this.#log = log;
  }

  get texts(): Texts {
    return this.#texts;
  }

  reload(read: () => Promise<Texts>): Promise<ReloadResult | ChangeRefusal> {
    return this.#turns.run(async () => {
      const texts = await read();
      const since = this.#broken?.since ?? Date.now();
      const told = await this.#byAll({ kind: 'reload', texts, brokenSince: since }, this.#slots());
      if ('exit' in told) {
        if (told.policy) this.#broken = { texts, since };
        return told;
      }
      this.#texts = texts;
      this.#broken = null;
      return told;
    });
  }

  /**
   * Applies the current policy and publications of other gateways in all workers. If the policy is missing or invalid,
   * the settings decide how long the last valid one is served. Rejects with errors of `read`.
   */
  policy(read: (served: Texts) => Promise<Texts>): Promise<ReloadResult | ChangeRefusal> {
    return this.#turns.run(async () => {
      const texts = await read(this.#texts);
      const since = this.#broken?.since ?? Date.now();
      const told = await this.#byAll({ kind: 'policy', texts, brokenSince: since }, this.#slots(), POLICY_MS);
      if ('exit' in told && told.policy) this.#broken = { texts, since };
      else {
        this.#texts = texts;
        this.#broken = null;
      }
      return told;
    });
  }

  async losePolicy(why: string): Promise<void> {
    const since = this.#broken?.since ?? Date.now();
    this.#broken = { texts: { ...this.#texts, policy: null, fault: why }, since };
    await Promise.all(
      this.#slots().map((slot) =>
        this.#within(slot, TAKE_MS, () => slot.peer?.ask('losePolicy', { why, since })),
      ),
    );
  }

  /**
   * Makes all workers other than `except` load new revocations from the data directory; resolves when each has done so
   * or ended.
   */
  async revoked(except: WorkerSlot | null = null): Promise<void> {
    const others = this.#slots().filter((slot) => slot !== except);
    await Promise.all(
      others.map((slot) => this.#within(slot, TAKE_MS, () => slot.peer?.ask('revoked', null))),
    );
  }

  handlers(slot: WorkerSlot, given: Texts): Pick<Handlers<SupervisorProtocol>, ChangeRequestName> {
    return {
      admit: () => this.#turns.run(() => this.#admit(slot, given)),
      enter: () => this.#enter(slot),
      leave: () => this.#release(slot),
      published: () => this.#taken(slot),
      draftChanged: async ({ id }) => {
        const others = this.#slots().filter((other) => other !== slot);
        await Promise.all(
          others.map((other) => this.#within(other, TAKE_MS, () => other.peer?.ask('draft', { id }))),
        );
      },
      revoked: () => this.revoked(slot),
    };
  }

  /**
   * Called after a worker has ended. If it was publishing, makes the other workers load its publication and ends its
   * turn.
   */
  async gone(slot: WorkerSlot): Promise<void> {
    if (this.#holder?.slot !== slot) return;
    await this.#taken(slot);
    this.#release(slot);
  }

  async #admit(slot: WorkerSlot, given: Texts): Promise<void> {
    const steps: WorkerChangeRequest[] = [];
    if (given !== this.#texts) steps.push({ kind: 'reload', texts: this.#texts, brokenSince: null });
    steps.push({ kind: 'version', texts: this.#texts, brokenSince: null });
    for (const change of steps) {
      const refusal = await slot.channel?.ask('prepare', change);
      if (refusal !== null) throw new PeerGone(refusal?.message ?? 'it ended before it served');
      await slot.channel?.ask('take', null);
    }
    const broken = this.#broken;
    if (broken !== null)
      await slot.channel?.ask('prepare', { kind: 'reload', texts: broken.texts, brokenSince: broken.since });
    slot.admitted();
  }

  #enter(slot: WorkerSlot): Promise<void> {
    const channel = slot.channel;
    return new Promise((resolve) => {
      void this.#turns.run(() => {
        // The worker may have ended while it waited; its successor will ask again.
        if (slot.channel !== channel) return undefined;
        return new Promise<void>((release) => {
          this.#holder = { slot, release };
          resolve();
        });
      });
    });
  }

  #release(slot: WorkerSlot): void {
    if (this.#holder?.slot !== slot) return;
    this.#holder.release();
    this.#holder = null;
  }

  /** Makes all workers other than `except` load the published version from disk; those that cannot are replaced. */
  async #taken(except: WorkerSlot): Promise<void> {
    const others = this.#slots().filter((slot) => slot !== except && slot.peer !== null);
    const change = { kind: 'version', texts: this.#texts, brokenSince: null } as const;
    const ready = await Promise.all(
      others.map(async (slot) => {
        const refusal = await this.#within(slot, TAKE_MS, () => slot.peer?.ask('prepare', change));
        if (refusal === null) return slot;
        if (refusal !== undefined) this.#end(slot, refusal.message);
        return null;
      }),
    );
    await this.#take(ready.filter((slot) => slot !== null));
  }

  async #byAll(
    change: WorkerChangeRequest,
    all: readonly WorkerSlot[],
    prepareMs = PREPARE_MS,
  ): Promise<ReloadResult | ChangeRefusal> {
    const serving = all.filter(({ peer }) => peer !== null);
    const heard = await Promise.all(
      serving.map(async (slot) => ({
        slot,
        refusal: await this.#within(slot, prepareMs, () => slot.peer?.ask('prepare', change)),
      })),
    );
    const ready = heard.flatMap(({ slot, refusal }) => (refusal === null ? [slot] : []));
    const refusal = heard.find(({ refusal }) => refusal !== null && refusal !== undefined)?.refusal;
    if (refusal !== null && refusal !== undefined) {
      await Promise.all(ready.map((slot) => this.#within(slot, TAKE_MS, () => slot.peer?.ask('drop', null))));
      return refusal;
    }
    const [told] = await this.#take(ready);
    return told ?? { exit: 1, message: 'error: no worker serves', policy: false, keptUntil: null };
  }

  async #take(slots: readonly WorkerSlot[]): Promise<readonly ReloadResult[]> {
    const told = await Promise.all(
      slots.map((slot) => this.#within(slot, TAKE_MS, () => slot.peer?.ask('take', null))),
    );
    return told.filter((one) => one !== undefined);
  }

  /** Returns the worker's response; undefined if the worker ended, or was killed because it was late or failed. */
  async #within<T>(slot: WorkerSlot, ms: number, ask: () => Promise<T> | undefined): Promise<T | undefined> {
    const late = setTimeout(() => this.#end(slot, 'it did not take up a change in time'), ms);
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof PeerGone)) this.#end(slot, messageOf(error));
      return undefined;
    } finally {
      clearTimeout(late);
    }
  }

  #end(slot: WorkerSlot, why: string): void {
    this.#log.error('a worker could not take up what the others serve: it is replaced', {
      worker: slot.number,
      why,
    });
    slot.kill();
  }
}
