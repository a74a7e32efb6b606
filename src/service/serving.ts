import type { ServiceLog } from '../base/log.js';
import type { FallbackPolicy, ServedModel } from '../model/served-model.js';
import type { PolicyFailureSettings } from './settings.js';

/** The served model, and the only place where it is replaced. */
export class CurrentModel {
  #model: ServedModel;
  readonly #policy: PolicyFallback;
  readonly #listeners: ((model: ServedModel) => void)[] = [];

  /**
   * @param fault reason why `first` has no policy; null if it has one
   * @param onPolicyEnded called when a kept policy expires
   */
  constructor(
    first: ServedModel,
    fault: PolicyLoadFault | null,
    settings: PolicyFailureSettings,
    log: ServiceLog,
    onPolicyEnded: () => void,
  ) {
    this.#model = first;
    this.#policy = new PolicyFallback(settings, log, () => {
      this.#replace(this.#model.underPolicy(null));
      onPolicyEnded();
    });
    if (fault !== null) this.#policy.noteMissingAtStart(fault);
  }

  get model(): ServedModel {
    return this.#model;
  }

  onReplace(listener: (model: ServedModel) => void): void {
    this.#listeners.push(listener);
  }

  /** Serves `next`, whose policy has just been read and is valid. */
  serve(next: ServedModel): void {
    this.#policy.noteValid();
    this.#replace(next);
  }

  /** Serves another published version. INVARIANT: it does not bring back an expired policy. */
  servePublished(next: ServedModel): void {
    this.#replace(this.#policy.missing ? next.underPolicy(null) : next);
  }

  /** Records that the newest policy has been missing or invalid since `since`. Returns the resulting state. */
  losePolicy(fault: PolicyLoadFault, since?: number): PolicyState {
    const state = this.#policy.noteInvalid(fault, since);
    if (state === 'missing') this.#replace(this.#model.underPolicy(null));
    return state;
  }

  /** The last valid policy while it is kept because a newer one is invalid; otherwise null. */
  get fallbackPolicy(): FallbackPolicy | null {
    return this.#policy.fallback;
  }

  /** The fault in the newest policy, for operators; null if that policy is in force. */
  get policyFault(): string | null {
    return this.#policy.fault;
  }

  get isNewestInForce(): boolean {
    return !this.#policy.missing && this.#policy.fallback === null;
  }

  close(): void {
    this.#policy.close();
  }

  #replace(next: ServedModel): void {
    this.#model = next;
    for (const listener of this.#listeners) listener(next);
  }
}

interface PolicyLoadFault {
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
  readonly #onExpired: () => void;
  #fallback: FallbackPolicy | null = null;
  #timer: NodeJS.Timeout | null = null;
  #missing = false;
  #fault: string | null = null;

  /** @param onExpired called when the kept policy expires */
  constructor(settings: PolicyFailureSettings, log: ServiceLog, onExpired: () => void) {
    this.#settings = settings;
    this.#log = log;
    this.#onExpired = onExpired;
  }

  get missing(): boolean {
    return this.#missing;
  }

  get fallback(): FallbackPolicy | null {
    return this.#fallback;
  }

  /** The fault in the newest policy; null if that policy is in force. */
  get fault(): string | null {
    return this.#fault;
  }

  noteMissingAtStart(fault: PolicyLoadFault): void {
    this.#missing = true;
    this.#fault = firstLine(fault);
    this.#log.error('no valid policy at the start: every request is refused (E2001) until there is one', {
      cause: this.#fault,
    });
  }

  /** Records that the newest policy has been missing or invalid since `brokenSince`. Returns the resulting state. */
  noteInvalid(fault: PolicyLoadFault, brokenSince = Date.now()): PolicyState {
    const cause = firstLine(fault);
    this.#fault = cause;
    const { keepMs, keepsUnknown } = this.#settings;
    const mayKeep = !fault.unknown || keepsUnknown;
    if (!this.#missing && mayKeep && brokenSince + keepMs > Date.now()) {
      const { since, until } = this.#fallback ?? this.#startFallback(brokenSince);
      this.#log.error('the policy is missing or invalid: the last valid one stays in force for now', {
        cause,
        since: new Date(since).toISOString(),
        until: new Date(until).toISOString(),
      });
      return 'kept';
    }
    this.#clearFallback();
    this.#missing = true;
    this.#log.error('no valid policy: every request is refused (E2001) until there is one', { cause });
    return 'missing';
  }

  noteValid(): void {
    if (this.#missing || this.#fallback !== null) this.#log.warn('a valid policy is in force again');
    this.#clearFallback();
    this.#missing = false;
    this.#fault = null;
  }

  close(): void {
    this.#clearFallback();
  }

  #clearFallback(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#fallback = null;
  }

  /** Starts the time limit at the first fault of a series; later faults do not extend it. */
  #startFallback(since: number): FallbackPolicy {
    const { keepMs } = this.#settings;
    const fallback = Object.freeze({ since, until: since + keepMs });
    this.#fallback = fallback;
    this.#timer = setTimeout(
      () => {
        this.#clearFallback();
        this.#missing = true;
        this.#log.error(
          'OSL_POLICY_KEEP_SECONDS are over without a valid policy: every request is refused (E2001) until there is one',
          { cause: this.#fault },
        );
        this.#onExpired();
      },
      Math.max(0, fallback.until - Date.now()),
    );
    this.#timer.unref();
    return fallback;
  }
}

function firstLine({ message }: PolicyLoadFault): string {
  return message.split('\n')[0] ?? '';
}
