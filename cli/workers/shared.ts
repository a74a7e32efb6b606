import { InternalError } from 'osl-compiler';
import {
  createLeasedLimiter,
  createLimitBooks,
  createPasswordGuesses,
  EntitySetBook,
  type LeasedLimiter,
  LIMIT_BUCKETS,
  LIMIT_COUNTERS,
  type LimitShare,
  QuotaBook,
  type UsedTokens,
} from '../../policy/index.js';
import { readManifestText } from '../../src/model/manifest/index.js';
import { PolicyUnknown } from '../../src/service/model.js';
import type { SharedProcessFiles } from '../../src/service/process-files.js';
import type { PreparedChange } from '../../src/service/reload/reload.js';
import type { Settings } from '../../src/service/settings.js';
import { RemoteCatalogs } from '../../src/surfaces/catalog/index.js';
import { countKeys, type SessionCaps } from '../../src/surfaces/pg/index.js';
import { toFailure } from '../exit.js';
import type { AssembledServer, SharedAcrossProcesses } from '../serve/server.js';
import type {
  ChangeRefusal,
  Handlers,
  Peer,
  SupervisorProtocol,
  Texts,
  WorkerChangeRequest,
  WorkerProtocol,
} from './messages.js';
import type { WorkerChannel } from './slot.js';

export type SupervisorChannel = Peer<WorkerProtocol, SupervisorProtocol>;

/** Requests other than start and stop; they wait until the service begins to start. */
type SupervisorRequestName = Exclude<keyof WorkerProtocol, 'start' | 'stop'>;

/** Parts of a worker's service that are shared with the other workers through the supervisor. */
export class SharedParts implements SharedProcessFiles {
  readonly #supervisor: SupervisorChannel;
  readonly #settings: Settings;
  #texts: Texts;
  #limiter: LeasedLimiter | null = null;
  #open: AssembledServer | null = null;
  #steady = true;
  #clockWrong = false;
  #prepared: PreparedChange | null = null;

  constructor(supervisor: SupervisorChannel, settings: Settings, texts: Texts) {
    this.#supervisor = supervisor;
    this.#settings = settings;
    this.#texts = texts;
  }

  limiter(limits: Parameters<SharedProcessFiles['limiter']>[0]): LeasedLimiter {
    this.#limiter = createLeasedLimiter(shareOf(this.#supervisor), limits);
    return this.#limiter;
  }

  async read(file: string): Promise<string> {
    const { manifestFile, policyFile } = this.#settings;
    const { manifest, policy, fault } = this.#texts;
    if (file === policyFile && policy === null && fault !== null) throw new PolicyUnknown(file, fault);
    const known = file === manifestFile ? manifest : file === policyFile ? policy : null;
    // If the supervisor could not read the file, reading it here fails as well and gives the reason.
    return known ?? readManifestText(file);
  }

  exchangeKey(): Promise<string> {
    return this.#supervisor.ask('exchangeKey', null);
  }

  firstUse(token: string, issuedAt: number, endsAt: number): Promise<boolean> {
    return this.#supervisor.ask('firstUse', { token, issuedAt, endsAt });
  }

  activation(): number | null {
    return this.#texts.activation;
  }

  hasControlAnswered(): boolean {
    return this.#texts.heard;
  }

  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    await this.#supervisor.ask('enter', null);
    try {
      return await work();
    } finally {
      await this.#supervisor.ask('leave', null);
    }
  }

  async notifyPublished(): Promise<void> {
    await this.#supervisor.ask('published', null);
  }

  isClockWrong(): boolean {
    return this.#clockWrong;
  }

  acceptsRequests(): boolean {
    return this.#steady;
  }

  common(server: number): SharedAcrossProcesses {
    const supervisor = this.#supervisor;
    return {
      cancels: {
        server,
        cancel: (worker, processId, key) => supervisor.ask('cancel', { worker, processId, key }),
      },
      sessions: {
        open: async (subject, address) => {
          if (!(await supervisor.ask('session', { subject, address }))) return null;
          return once(() => tell(supervisor.ask('sessionEnded', { subject, address })));
        },
      },
      own: {
        sessionsOf: (owner) => supervisor.ask('sessionsOf', { owner }),
        signal: (owner, { pid, what }) => supervisor.ask('signal', { owner, pid, what }),
      },
      catalogs: new RemoteCatalogs({
        ask: (asked) => supervisor.ask('catalog', asked),
        send: (part) => supervisor.ask('catalogPart', part),
        stop: (id) => tell(supervisor.ask('stopCatalog', { id })),
      }),
      name: `worker ${server}`,
      operated: {
        views: () => supervisor.ask('views', null),
        histories: (span) => supervisor.ask('histories', { span }),
        slowest: (from, until) => supervisor.ask('slowest', { from, until }),
        command: (id, what) => supervisor.ask('command', { id, what }),
        drain: (on) => supervisor.ask('drain', { on }),
        reload: () => supervisor.ask('reloadAll', null),
        stop: () => tell(supervisor.ask('stopAll', null)),
      },
      shadow: (command) => supervisor.ask('shadow', command),
      gather: () => supervisor.ask('gather', null),
      jobs: {
        look: (job) => supervisor.ask('job', { job, by: null }),
        begin: (job, by) => supervisor.ask('job', { job, by }),
      },
    };
  }

  async notifyDraftChanged(id: string): Promise<void> {
    await this.#supervisor.ask('draftChanged', { id });
  }

  async notifyRevoked(): Promise<void> {
    await this.#supervisor.ask('revoked', null);
  }

  /** Called with the open service; resolves when the worker may listen. */
  async admit(open: AssembledServer): Promise<void> {
    this.#open = open;
    await this.#supervisor.ask('admit', null);
    // The worker was not notified of revocations made since the service opened.
    await open.lookAtRevoked();
    const start = await this.#supervisor.ask('runningShadow', null);
    if (start !== null) await open.own.shadow({ do: 'start', start });
  }

  handlers(): Pick<Handlers<WorkerProtocol>, SupervisorRequestName> {
    return {
      prepare: (change) => this.#prepare(change),
      take: async () => {
        const prepared = this.#prepared;
        this.#prepared = null;
        return prepared === null ? { now: [], kept: [] } : prepared.apply();
      },
      losePolicy: ({ why, since }) => this.#open?.losePolicy(why, since),
      drop: async () => {
        await this.#prepared?.abandon();
        this.#prepared = null;
      },
      draft: ({ id }) => this.#open?.renewDraft(id),
      revoked: () => this.#open?.lookAtRevoked(),
      cancelled: ({ processId, key }) => this.#open?.cancel(processId, Buffer.from(key)) ?? false,
      ownSessions: async ({ owner }) => [...((await this.#open?.register.sessionsOf(owner)) ?? [])],
      signalled: ({ owner, pid, what }) => this.#open?.register.signal(owner, { pid, what }) ?? false,
      figures: async () => (await this.#open?.figures()) ?? '[]',
      view: async () => this.#own().view(),
      history: async ({ span }) => this.#own().history(span),
      slowest: async ({ from, until }) => [...this.#own().slowest(from, until)],
      obey: ({ id, what }) => this.#open?.own.command(id, what) ?? false,
      drained: ({ on }) => this.#open?.own.drain(on),
      shadow: (command) => this.#open?.own.shadow(command) ?? null,
      standing: ({ steady, clockWrong }) => {
        this.#steady = steady;
        this.#clockWrong = clockWrong;
      },
      reclaim: ({ counter, key, endsAt }) => this.#limiter?.reclaim(counter, key, endsAt) ?? 0,
    };
  }

  #own(): AssembledServer['own'] {
    if (this.#open === null) throw new InternalError('the worker is not open');
    return this.#open.own;
  }

  async #prepare({ kind, texts, brokenSince }: WorkerChangeRequest): Promise<ChangeRefusal | null> {
    const open = this.#open;
    if (open === null)
      return { exit: 1, message: 'error: this worker is not open yet', policy: false, keptUntil: null };
    const before = this.#texts;
    this.#texts = texts;
    try {
      this.#prepared = await open.prepare({ kind, ...(brokenSince !== null && { brokenSince }) });
      return null;
    } catch (error) {
      this.#texts = before;
      const { exit, message } = toFailure(error);
      const policy = error instanceof Error && error.name === 'PolicyFault';
      return { exit, message, policy, keptUntil: open.own.view().policy_kept_until };
    }
  }
}

/** Ignores a failed notification: it fails only if the supervisor ends, and then its workers end too. */
function tell(told: Promise<void>): void {
  told.catch(() => undefined);
}

function once(work: () => void): () => void {
  let done = false;
  return () => {
    if (!done) work();
    done = true;
  };
}

function shareOf(supervisor: SupervisorChannel): LimitShare {
  return {
    lease: (counter, key, arrived) => supervisor.ask('lease', { counter, key }, arrived),
    charge: (charges) => supervisor.ask('charge', { charges: [...charges] }),
    addEntities: (additions) =>
      supervisor.ask('addEntities', { additions: additions.map((a) => ({ ...a, members: [...a.members] })) }),
    // Never null (unknown): the supervisor, which counts for all workers, exists as long as this worker does.
    peers: () => 1,
    handBack: (counter, key, lease) => tell(supervisor.ask('handBack', { counter, key, ...lease })),
    limits: (limits) => tell(supervisor.ask('limits', limits)),
    guesses: {
      countWrong: (account, address) => supervisor.ask('wrongPassword', { account, address }),
      acceptsRight: (account, address) => supervisor.ask('rightPassword', { account, address }),
    },
  };
}

type LimitMessage =
  | 'lease'
  | 'charge'
  | 'addEntities'
  | 'handBack'
  | 'limits'
  | 'wrongPassword'
  | 'rightPassword';

/** Rate limits and password guesses of all workers, counted in the supervisor. */
export class SharedLimits {
  readonly #books;
  readonly #quotas = new QuotaBook();
  readonly #entities = new EntitySetBook();
  readonly #guesses = createPasswordGuesses();
  #known = false;

  /** @param peerOf returns the channel to a worker; null if that worker is not serving */
  constructor(workers: number, peerOf: (worker: number) => WorkerChannel | null) {
    this.#books = createLimitBooks(workers, async (holder, counter, key, endsAt) => {
      // The unused quota of a worker that has ended is lost.
      const unused = peerOf(holder)?.ask('reclaim', { counter, key, endsAt });
      return (await unused?.catch(() => 0)) ?? 0;
    });
  }

  /**
   * Returns the message handlers for one worker. Once limits are known, those of a worker that is not serving yet are
   * ignored: its files may be newer than the served ones.
   */
  handlers(worker: number, serves: () => boolean): Pick<Handlers<SupervisorProtocol>, LimitMessage> {
    return {
      lease: ({ counter, key }) => this.#books[counter].lease(key, worker),
      charge: ({ charges }) => charges.map((charge) => this.#quotas.add(charge)),
      addEntities: ({ additions }) => this.#entities.add(additions),
      handBack: ({ counter, key, tokens, endsAt }) => this.#books[counter].handBack(key, { tokens, endsAt }),
      limits: (limits) => {
        if (serves() || !this.#known)
          for (const bucket of LIMIT_BUCKETS) this.#books[bucket].perWindow = limits[bucket];
        this.#known = true;
      },
      wrongPassword: ({ account, address }) => this.#guesses.countWrong(account, address),
      rightPassword: ({ account, address }) => this.#guesses.acceptsRight(account, address),
    };
  }

  forget(worker: number): void {
    for (const counter of LIMIT_COUNTERS) this.#books[counter].forget(worker);
  }
}

type SessionMessage = 'session' | 'sessionEnded';

export class SharedSessions {
  readonly #caps: SessionCaps;
  readonly #open = new Map<string, Map<number, number>>();

  constructor(caps: SessionCaps) {
    this.#caps = caps;
  }

  handlers(worker: number): Pick<Handlers<SupervisorProtocol>, SessionMessage> {
    return {
      session: ({ subject, address }) => {
        const counted = countKeys(subject, address, this.#caps);
        if (counted.some(({ key, limit }) => this.#count(key) >= limit)) return false;
        for (const { key } of counted) this.#begin(key, worker);
        return true;
      },
      sessionEnded: ({ subject, address }) => {
        for (const { key } of countKeys(subject, address, this.#caps)) this.#end(key, worker);
      },
    };
  }

  forget(worker: number): void {
    for (const key of [...this.#open.keys()]) this.#forgetIn(key, worker);
  }

  #count(key: string): number {
    return [...(this.#open.get(key)?.values() ?? [])].reduce((sum, n) => sum + n, 0);
  }

  #begin(key: string, worker: number): void {
    const counts = this.#open.get(key) ?? new Map<number, number>();
    counts.set(worker, (counts.get(worker) ?? 0) + 1);
    this.#open.set(key, counts);
  }

  #end(key: string, worker: number): void {
    const counts = this.#open.get(key);
    const left = (counts?.get(worker) ?? 0) - 1;
    if (left > 0) counts?.set(worker, left);
    else this.#forgetIn(key, worker);
  }

  #forgetIn(key: string, worker: number): void {
    const counts = this.#open.get(key);
    counts?.delete(worker);
    if (counts?.size === 0) this.#open.delete(key);
  }
}

type TokenMessage = 'exchangeKey' | 'firstUse';

export class SharedTokens {
  readonly #key: string;
  readonly #used: UsedTokens;

  constructor(key: string, used: UsedTokens) {
    this.#key = key;
    this.#used = used;
  }

  handlers(): Pick<Handlers<SupervisorProtocol>, TokenMessage> {
    return {
      exchangeKey: () => this.#key,
      firstUse: ({ token, issuedAt, endsAt }) => this.#used.markUsed(token, issuedAt, endsAt),
    };
  }
}
