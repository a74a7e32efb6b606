import type { ServiceLog } from '../base/log.js';
import type { KeptPolicy } from '../model/model.js';
import type { ServedModel } from '../model/served-model.js';
import { PolicyStanding, type PolicyState, type PolicyTrouble } from './policy-standing.js';
import type { PolicyFailureSettings } from './settings.js';

/** What serves now. This is the only place where it is replaced: whole, and everybody who follows it hears of it. */
export class Serving {
  #model: ServedModel;
  readonly #policy: PolicyStanding;
  readonly #followers: ((model: ServedModel) => void)[] = [];

  /**
   * @param trouble why `first` has no policy; null if it has one
   * @param onPolicyEnded hears that the time of a kept policy is over: there is none from then on
   */
  constructor(
    first: ServedModel,
    trouble: PolicyTrouble | null,
    settings: PolicyFailureSettings,
    log: ServiceLog,
    onPolicyEnded: () => void,
  ) {
    this.#model = first;
    this.#policy = new PolicyStanding(settings, log, () => {
      this.#replace(this.#model.underPolicy(null));
      onPolicyEnded();
    });
    if (trouble !== null) this.#policy.failedAtStart(trouble);
  }

  get model(): ServedModel {
    return this.#model;
  }

  /** Calls `follower` with each model that serves from now on. */
  follow(follower: (model: ServedModel) => void): void {
    this.#followers.push(follower);
  }

  /** Serves `next`, whose policy is valid and was read just now. */
  take(next: ServedModel): void {
    this.#policy.mended();
    this.#replace(next);
  }

  /** Serves `next`, in which something else is published. INVARIANT: it brings no policy back whose time is over. */
  takePublished(next: ServedModel): void {
    this.#replace(this.#policy.missing ? next.underPolicy(null) : next);
  }

  /** The newest policy was found missing or invalid, `since` then. Gives what is so from now on. */
  losePolicy(trouble: PolicyTrouble, since?: number): PolicyState {
    const state = this.#policy.failed(trouble, since);
    if (state === 'missing') this.#replace(this.#model.underPolicy(null));
    return state;
  }

  /** The last valid policy while it serves for a bounded time; null if the newest serves, or none does. */
  get keptPolicy(): KeptPolicy | null {
    return this.#policy.kept;
  }

  /** Fault of the newest policy, for operators; null while it serves. */
  get policyFault(): string | null {
    return this.#policy.fault;
  }

  /** True if the newest policy serves. */
  get isSound(): boolean {
    return !this.#policy.missing && this.#policy.kept === null;
  }

  close(): void {
    this.#policy.close();
  }

  #replace(next: ServedModel): void {
    this.#model = next;
    for (const follower of this.#followers) follower(next);
  }
}
