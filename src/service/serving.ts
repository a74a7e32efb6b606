import type { ServiceLog } from '../base/log.js';
import type { FallbackPolicy, ServedModel } from '../model/served-model.js';
import type { PolicyFailureSettings } from './settings.js';

/** The served model, and the only place where it is replaced. */
export class CurrentModel {
  #model: ServedModel;
  readonly #policy: PolicyFallback;
  readonly #followers: ((model: ServedModel) => void)[] = [];

  /**
   * @param trouble reason why `first` has no policy; null if it has one
   * @param onPolicyEnded called when a kept policy expires
   */
  constructor(
    first: ServedModel,
    trouble: PolicyTrouble | null,
    settings: PolicyFailureSettings,
    log: ServiceLog,
    onPolicyEnded: () => void,
  ) {
    this.#model = first;
    this.#policy = new PolicyFallback(settings, log, () => {
      this.#replace(this.#model.underPolicy(null));
      onPolicyEnded();
    });
    if (trouble !== null) this.#policy.failedAtStart(trouble);
  }

  get model(): ServedModel {
    return this.#model;
  }

  follow(follower: (model: ServedModel) => void): void {
    this.#followers.push(follower);
  }

  /** Serves `next`, whose policy has just been read and is valid. */
  take(next: ServedModel): void {
    this.#policy.mended();
    this.#replace(next);
  }

  /** Serves another published version. INVARIANT: it does not bring back an expired policy. */
  takePublished(next: ServedModel): void {
    this.#replace(this.#policy.missing ? next.underPolicy(null) : next);
  }

  /** Records that the newest policy has been missing or invalid since `since`. Returns the resulting state. */
  losePolicy(trouble: PolicyTrouble, since?: number): PolicyState {
    const state = this.#policy.failed(trouble, since);
    if (state === 'missing') this.#replace(this.#model.underPolicy(null));
    return state;
  }

  /** The last valid policy while it is kept because a newer one is invalid; otherwise null. */
  get keptPolicy(): FallbackPolicy | null {
    return this.#policy.kept;
  }

  /** The fault in the newest policy, for operators; null if that policy is in force. */
  get policyFault(): string | null {
    return this.#policy.fault;
  }

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

interface PolicyTrouble {
  /** Message for operators, with file, line and column. */
  readonly message: string;
  /** True if it is unknown which policy to serve: the last one may have been withdrawn. */
  readonly unknown: boolean;
}

export type PolicyState = 'kept' | 'missing';

/**
 * Decides which policy is in force while the newest is missing or invalid: the last valid one for a limited time, then
 * none. If it is unknown which policy is the newest, the last valid one is dropped at once, unless configured
 * otherwise. Without a policy, requests are refused until a valid one arrives.
 */
class PolicyFallback {
  readonly #settings: PolicyFailureSettings;
  readonly #log: ServiceLog;
  readonly #ended: () => void;
  #kept: FallbackPolicy | null = null;
  #timer: NodeJS.Timeout | null = null;
  #missing = false;
  #fault: string | null = null;

  /** @param ended called when the kept policy expires */
  constructor(settings: PolicyFailureSettings, log: ServiceLog, ended: () => void) {
    this.#settings = settings;
    this.#log = log;
    this.#ended = ended;
  }

  get missing(): boolean {
    return this.#missing;
  }

  get kept(): FallbackPolicy | null {
    return this.#kept;
  }

  /** The fault in the newest policy; null if that policy is in force. */
  get fault(): string | null {
    return this.#fault;
  }

  failedAtStart(trouble: PolicyTrouble): void {
    this.#missing = true;
    this.#fault = firstOf(trouble);
    this.#log.error('no valid policy at the start: every request is refused (E2001) until there is one', {
      cause: this.#fault,
    });
  }

  /** Records that the newest policy has been missing or invalid since `brokenSince`. Returns the resulting state. */
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

  /** Starts the time limit at the first fault of a series; later faults do not extend it. */
  #keep(since: number): FallbackPolicy {
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

function firstOf({ message }: PolicyTrouble): string {
  return message.split('\n')[0] ?? '';
}
