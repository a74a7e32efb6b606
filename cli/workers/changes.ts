import type { ServiceLog } from '../../src/base/log.js';
import { Serial } from '../../src/base/serial.js';
import { messageOf } from '../../src/base/thrown.js';
import type { ReloadResult } from '../../src/service/reload/reload.js';
import type { ChangeAsked, ChangeRefusal, OfSupervisor, Texts } from './messages.js';
import { type Handlers, PeerGone } from './peer.js';
import type { WorkerSlot } from './slot.js';

type ChangeRequestName = 'admit' | 'enter' | 'leave' | 'published' | 'draftChanged' | 'revoked';

/** For a worker to read and check a change. */
const PREPARE_MS = 60_000;
/** … where it takes away rights: who is later is ended, for it must not go on with them. */
const POLICY_MS = 1_500;
/** To read what another has published, which compiles, and to take up what is prepared: who is later is replaced. */
const TAKE_MS = 1_000;

/** What all workers serve: one change at a time, which all of them take up, or none. */
export class WorkerChanges {
  readonly #slots: () => readonly WorkerSlot[];
  readonly #log: ServiceLog;
  readonly #turns = new Serial();
  #texts: Texts;
  /** A policy that a reload found broken, since then, ms since 1970. */
  #broken: { readonly texts: Texts; readonly since: number } | null = null;
  /** The worker that changes something now. */
  #holder: { readonly slot: WorkerSlot; readonly release: () => void } | null = null;

  constructor(texts: Texts, slots: () => readonly WorkerSlot[], log: ServiceLog) {
    this.#texts = texts;
    this.#slots = slots;
    this.#log = log;
  }

  /** What a worker that begins now is to serve. */
  get texts(): Texts {
    return this.#texts;
  }

  /** Has all workers read everything anew. */
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
   * Has all workers take up the policy of now, and what other gateways have published. Whatever keeps them from it, what
   * may be served then is for the settings to say. Rejects with what `read` does.
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

  /** What is to serve cannot be known any more: told to all at once, whatever change is under way. */
  async losePolicy(why: string): Promise<void> {
    const since = this.#broken?.since ?? Date.now();
    this.#broken = { texts: { ...this.#texts, policy: null, fault: why }, since };
    await Promise.all(
      this.#slots().map((slot) =>
        this.#within(slot, TAKE_MS, () => slot.peer?.ask('losePolicy', { why, since })),
      ),
    );
  }

  /** Something was revoked, which stands in the data directory: resolves once all but one worker have read it, or are gone. */
  async revoked(except: WorkerSlot | null = null): Promise<void> {
    const others = this.#slots().filter((slot) => slot !== except);
    await Promise.all(
      others.map((slot) => this.#within(slot, TAKE_MS, () => slot.peer?.ask('revoked', null))),
    );
  }

  /** What a worker may ask. */
  handlers(slot: WorkerSlot, given: Texts): Pick<Handlers<OfSupervisor>, ChangeRequestName> {
    return {
      admit: () => this.#turns.run(() => this.#admit(slot, given)),
      enter: () => this.#enter(slot),
      leave: () => {
        this.#release(slot);
        return null;
      },
      published: async () => {
        await this.#taken(slot);
        return null;
      },
      draftChanged: async ({ id }) => {
        const others = this.#slots().filter((other) => other !== slot);
        await Promise.all(
          others.map((other) => this.#within(other, TAKE_MS, () => other.peer?.ask('draft', { id }))),
        );
        return null;
      },
      revoked: async () => {
        await this.revoked(slot);
        return null;
      },
    };
  }

  /** A worker has ended. What it had published by then is published. */
  async gone(slot: WorkerSlot): Promise<void> {
    if (this.#holder?.slot !== slot) return;
    await this.#taken(slot);
    this.#release(slot);
  }

  /** A worker that was begun some time ago takes up what the others have, and is one of them. */
  async #admit(slot: WorkerSlot, given: Texts): Promise<null> {
    const steps: ChangeAsked[] = [];
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
    return null;
  }

  #enter(slot: WorkerSlot): Promise<null> {
    const channel = slot.channel;
    return new Promise((resolve) => {
      void this.#turns.run(() => {
        // It may have ended while it waited; who came in its place asks for itself.
        if (slot.channel !== channel) return undefined;
        return new Promise<void>((release) => {
          this.#holder = { slot, release };
          resolve(null);
        });
      });
    });
  }

  #release(slot: WorkerSlot): void {
    if (this.#holder?.slot !== slot) return;
    this.#holder.release();
    this.#holder = null;
  }

  /** All but one take up what is published: it is on the disk, so who cannot is replaced by one that reads it there. */
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
    change: ChangeAsked,
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

  /** What a worker says in time. One that does not is ended; undefined then, and where it ended by itself. */
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
