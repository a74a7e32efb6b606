import { NoSystemCredentials } from '../upstream-failure.js';
import { withoutLogin } from './hosts.js';

/** By which URLs the sessions of a connector log in. */
export interface Logins {
  readonly url: string;
  readonly systemUrl: string | null;
}

/** The server does not take the role with this password. */
const REFUSED: ReadonlySet<string> = new Set(['28P01', '28000']);
/** Who gives passwords need not be asked for each session that is refused, in ms. */
const REST_MS = 5_000;

/** The logins that are good now. One that the server refuses is asked for anew, once for all who wait. */
export class LoginsNow {
  #now: Logins;
  readonly #source: (() => Promise<Logins>) | null;
  #asking: Promise<void> | null = null;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor({ url, systemUrl, logins }: Logins & { readonly logins?: () => Promise<Logins> }) {
    this.#now = { url, systemUrl };
    this.#source = logins ?? null;
  }

  renew({ url, systemUrl }: Logins): void {
    this.#now = { url, systemUrl };
  }

  /** Rejects as `connect` does, or with NoSystemCredentials. */
  async connect<T>(which: keyof Logins, connect: (url: string) => Promise<T>): Promise<T> {
    const url = this.#urlOf(which);
    try {
      return await connect(url);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.#ask();
      const next = this.#urlOf(which);
      if (next === url) throw error;
      return connect(next);
    }
  }

  #urlOf(which: keyof Logins): string {
    const url = this.#now[which];
    if (url === null) throw new NoSystemCredentials();
    return url;
  }

  #ask(): Promise<void> {
    if (this.#source === null) return Promise.resolve();
    if (this.#asking === null && performance.now() - this.#askedAt < REST_MS) return Promise.resolve();
    this.#asking ??= this.#source()
      .then(
        (next) => this.#take(next),
        () => undefined, // the server's refusal says more to the operator, and a reload says what is wrong with the source
      )
      .finally(() => {
        this.#asking = null;
        this.#askedAt = performance.now();
      });
    return this.#asking;
  }

  /** Another database is for a restart. */
  #take(next: Logins): void {
    const { url, systemUrl } = this.#now;
    this.#now = {
      url: withoutLogin(next.url) === withoutLogin(url) ? next.url : url,
      systemUrl: sameOrNone(systemUrl, next.systemUrl) ? next.systemUrl : systemUrl,
    };
  }
}

function sameOrNone(a: string | null, b: string | null): boolean {
  return a !== null && b !== null && withoutLogin(a) === withoutLogin(b);
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && REFUSED.has(String(error.code));
}
