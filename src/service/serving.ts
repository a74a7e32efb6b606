import type { ServiceLog } from '../base/log.js';
import type { KeptPolicy, ServedModel } from '../model/served-model.js';
import type { PolicyFailureSettings } from './settings.js';

/** What serves now. This is the only place where it is replaced: whole, and everybody who follows it hears of it. */
export class CurrentModel {
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

/** Why there is no valid policy. */
interface PolicyTrouble {
  /** For operators: file, line and column, and what is wrong there. */
  readonly message: string;
  /** Which policy is to serve cannot be told, so the last one may be one that was withdrawn. */
  readonly unknown: boolean;
}

/** What of it is recorded. */
export type PolicyState = 'kept' | 'missing';

/**
 * Which policy may serve while the newest is missing or invalid: the last valid one for a bounded time, then none. Where it
 * cannot be told which is the newest, none at once, unless the settings say otherwise. After that only a valid policy ends
 * the refusals.
 */
class PolicyStanding {
  readonly #settings: PolicyFailureSettings;
  readonly #log: ServiceLog;
  readonly #ended: () => void;
  #kept: KeptPolicy | null = null;
  #timer: NodeJS.Timeout | null = null;
  #missing = false;
  #fault: string | null = null;

  /** @param ended the time of a kept policy is over: from now on there is none */
  constructor(settings: PolicyFailureSettings, log: ServiceLog, ended: () => void) {
    this.#settings = settings;
    this.#log = log;
    this.#ended = ended;
  }

  /** No policy may serve. */
  get missing(): boolean {
    return this.#missing;
  }

  get kept(): KeptPolicy | null {
    return this.#kept;
  }

  /** The fault of the newest policy, for operators; null while it serves. */
  get fault(): string | null {
    return this.#fault;
  }

  /** The server starts, and there is no valid policy. */
  failedAtStart(trouble: PolicyTrouble): void {
    this.#missing = true;
    this.#fault = firstOf(trouble);
    this.#log.error('no valid policy at the start: every request is refused (E2001) until there is one', {
      cause: this.#fault,
    });
  }

  /** The newest policy was found missing or invalid, `since` then. Gives what is so from now on. */
  failed(trouble: PolicyTrouble, brokenSince = Date.now()): PolicyState {
    const cause = firstOf(trouble);
    this.#fault = cause;
    const { keepMs, keepsUnknown } = this.#settings;
    const keeps = !trouble.unknown || keepsUnknown;
    if (!this.#missing && keeps && brokenSince + keepMs > Date.now()) {
      const { since, until } = this.#kept ?? this.#keep(brokenSince);
      this.#log.error('the policy is missing or invalid: the last valid one stays in force for now', {
        cause,
        since: new Date(since).toISOString(),
        until: new Date(until).toISOString(),
      });
      return 'kept';
    }
    this.#forget();
    this.#missing = true;
    this.#log.error('no valid policy: every request is refused (E2001) until there is one', { cause });
    return 'missing';
  }

  /** A valid one was taken up. */
  mended(): void {
    if (this.#missing || this.#kept !== null) this.#log.warn('a valid policy is in force again');
    this.#forget();
    this.#missing = false;
    this.#fault = null;
  }

  close(): void {
    this.#forget();
  }

  #forget(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#kept = null;
  }

  /** The time runs from the first fault: another one does not prolong it. */
  #keep(since: number): KeptPolicy {
    const { keepMs } = this.#settings;
    const kept = Object.freeze({ since, until: since + keepMs });
    this.#kept = kept;
    this.#timer = setTimeout(
      () => {
        this.#forget();
        this.#missing = true;
        this.#log.error(
          'OSL_POLICY_KEEP_SECONDS are over without a valid policy: every request is refused (E2001) until there is one',
          { cause: this.#fault },
        );
        this.#ended();
      },
      Math.max(0, kept.until - Date.now()),
    );
    this.#timer.unref();
    return kept;
  }
}

/** Of several faults the first: the place in the file and what is wrong there. */
function firstOf({ message }: PolicyTrouble): string {
  return message.split('\n')[0] ?? '';
}
