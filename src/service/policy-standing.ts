import type { ServiceLog } from '../base/log.js';
import type { KeptPolicy } from '../model/model.js';
import type { PolicyFailureSettings } from './settings.js';

/** Why there is no sound policy. */
type Fault = Pick<Error, 'message'>;

/** What of it is recorded. */
export type PolicyState = 'kept' | 'missing';

/**
 * Whether a policy may serve: while the one of the file is broken, the last good one for a bounded time, or none, as the
 * settings say. Once there is none, only a reload that finds a good one ends that.
 */
export class PolicyStanding {
  readonly #settings: PolicyFailureSettings;
  readonly #log: ServiceLog;
  readonly #ended: () => void;
  #kept: KeptPolicy | null = null;
  #timer: NodeJS.Timeout | null = null;
  #missing = false;

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

  /** The server starts, and there is no good policy. */
  failedAtStart(fault: Fault): void {
    this.#missing = true;
    this.#log.error('there is no policy: every request is refused until a reload finds a good one', {
      cause: causeOf(fault),
    });
  }

  /** A reload found none, `since` then. Says what is so from now on. */
  failed(fault: Fault, brokenSince = Date.now()): PolicyState {
    const cause = causeOf(fault);
    const { whenBroken, keepMs } = this.#settings;
    if (!this.#missing && whenBroken === 'keep' && brokenSince + keepMs > Date.now()) {
      const { since, until } = this.#kept ?? this.#keep(brokenSince);
      this.#log.error('the policy is missing or broken, and the last good one serves for a while', {
        cause,
        since: new Date(since).toISOString(),
        until: new Date(until).toISOString(),
      });
      return 'kept';
    }
    this.#missing = true;
    this.#log.error('the policy is missing or broken, so every request is refused', { cause });
    return 'missing';
  }

  /** A reload took up a good one. */
  mended(): void {
    if (this.#missing || this.#kept !== null) this.#log.warn('there is a good policy again');
    this.close();
    this.#missing = false;
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#kept = null;
  }

  /** The time runs from the first reload that failed: another one does not prolong it. */
  #keep(since: number): KeptPolicy {
    const { keepMs } = this.#settings;
    const kept = Object.freeze({ since, until: since + keepMs });
    this.#kept = kept;
    this.#timer = setTimeout(
      () => {
        this.close();
        this.#missing = true;
        this.#log.error('the last good policy has served for as long as it may: every request is refused');
        this.#ended();
      },
      Math.max(0, kept.until - Date.now()),
    );
    this.#timer.unref();
    return kept;
  }
}

/** Of several faults the first: the place in the file and what is wrong there. */
function causeOf({ message }: Fault): string {
  return message.split('\n')[0] ?? '';
}
