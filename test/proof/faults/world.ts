import { Client } from 'pg';
import type { AuditEntry, AuditLog } from '../../../audit/index.js';
import { createPasswordGuesses } from '../../../policy/index.js';
import { type OpenedEngine, openEngine } from '../../../src/engine/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { makeScramVerifier } from '../../../wire/index.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { type NativePostgres, startNativePostgres, useServer } from '../../support/native-postgres.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import { startTestService, type TestService } from '../../support/service.js';
import { SHOP_POLICY, SHOP_SCRIPT } from '../../support/shop.js';
import { watchedLog } from '../../support/watched-log.js';

export interface Caller {
  readonly subject: string;
  readonly token: string;
  readonly account: { readonly login: string; readonly password: string };
}

/** A gateway over one upstream session, with a proxy on each side of it. */
export interface World {
  readonly shop: TestService;
  readonly caller: Caller;
  /** Of the gateway itself, which runs each statement alone on its one session. */
  readonly port: number;
  /** The same with sessions that short statements share; the embedded engine has none. */
  readonly sharedPort: number;
  /** Between a client and the gateway. */
  readonly front: FaultProxy;
  /** Between the gateway and its Postgres; null on the embedded engine. */
  readonly back: FaultProxy | null;
  readonly postgres: NativePostgres | null;
  readonly audit: AuditWatch;
  /** Clients that are connected. */
  readonly connections: number;
  /** The process ids of the gateway's own sessions upstream, and what they do. */
  backends(): Promise<readonly { readonly pid: number; readonly state: string }[]>;
  /** Ends those sessions as an operator would: 57P01. */
  terminate(): Promise<void>;
  close(): Promise<void>;
}

/** What the log was given since the start. */
interface AuditWatch {
  /** Decisions about the caller. */
  readonly decisions: number;
  /** Requests that were let in and have no outcome yet. */
  readonly open: number;
}

/** Orders with notes of about a KiB, which `a stream` reads, and enough of them that a join of all does not end. */
const FILL = `INSERT INTO shop.orders
  SELECT n, 1 + n % 4, 'eu', 1, 1.5, timestamptz '2026-02-01 00:00:00+00', CASE WHEN n <= 4000 THEN repeat(md5(n::text), 30) END
  FROM generate_series(1001, 61000) AS n;
  ANALYZE shop.orders;`;

/** A join of this takes far longer than any test waits. */
export const ENDLESS = 'select count(*) from "order" a join "order" b on a.customer_id = b.customer_id';

const PASSWORD = 'correct horse, battery: staple';
/** A token lives for five minutes at most, and a night of faults for hours. */
const RENEWAL_MS = 60_000;

export interface WorldOptions {
  readonly engine: 'native' | 'embedded';
  readonly timeoutMs?: number;
  /** A server that runs already; its caller stops it. The world has a database of its own on it. */
  readonly server?: NativePostgres;
}

/** Null where there is no native Postgres and one is asked for. */
export async function openWorld(options: WorldOptions): Promise<World | null> {
  const postgres = options.engine === 'native' ? await upstreamOf(options.server) : null;
  if (options.engine === 'native' && postgres === null) return null;
  const back = postgres === null ? null : await startFaultProxy(Number(new URL(postgres.url).port));
  const shop = await startTestService({
    ...(postgres === null || back === null
      ? {}
      : { postgres: { ...postgres, readerUrl: through(back, postgres) } }),
    policy: `${SHOP_POLICY}\nservice_accounts:\n  dash: { subject: user:ann, scram: "${await makeScramVerifier(PASSWORD)}" }\n`,
    script: `${SHOP_SCRIPT}${FILL}`,
  });
  const { service } = shop.open;
  const sealed = sealedParts(service);
  const watch = watched(sealed.audit, 'user:ann');
  const settings = {
    ...sealing(service, {
      audit: watch.log,
      limiter: {
        ...sealed.limiter,
        guesses: createPasswordGuesses(),
        takeAddress: () => ({ ok: true as const }),
      },
    }),
    caps: { ...service.caps, timeoutMs: options.timeoutMs ?? service.caps.timeoutMs },
  };
  const alone = postgres === null || back === null ? null : await unshared(through(back, postgres));
  const engines = alone === null ? sealed.engines : new Map([[service.defaultConnector, alone.governed]]);
  const frontend = createPgFrontend(sealing(settings, { engines }));
  const { port } = await frontend.listen(0, '127.0.0.1');
  const sharing = createPgFrontend(settings);
  const { port: sharedPort } = await sharing.listen(0, '127.0.0.1');
  const front = await startFaultProxy(port);
  const admin = postgres === null ? null : new Backends(postgres.url);
  let token = await shop.token('user:ann');
  const renewal = setInterval(() => {
    void shop.token('user:ann').then((fresh) => {
      token = fresh;
    });
  }, RENEWAL_MS).unref();
  return {
    shop,
    caller: {
      subject: 'user:ann',
      get token() {
        return token;
      },
      account: { login: 'dash', password: PASSWORD },
    },
    port,
    sharedPort,
    front,
    back,
    postgres,
    audit: watch,
    get connections() {
      return frontend.connections + sharing.connections;
    },
    backends: async () => admin?.list() ?? [],
    terminate: async () => admin?.terminate(),
    async close() {
      clearInterval(renewal);
      await admin?.end();
      await front.close();
      await Promise.all([frontend.stop(0), sharing.stop(0)]);
      await alone?.close();
      await shop.close();
      await back?.close();
      await postgres?.stop();
    },
  };
}

function upstreamOf(server: NativePostgres | undefined): Promise<NativePostgres | null> {
  return server === undefined ? startNativePostgres() : useServer(server.url);
}

/** One session, shared by nobody: a statement that holds it is in everybody's way. */
function unshared(url: string): Promise<OpenedEngine> {
  return openEngine(
    { kind: 'postgres', url, systemUrl: null, poolSize: 1, sharedSessions: 0 },
    { onUpstreamError: () => undefined },
  );
}

function through(proxy: FaultProxy, postgres: NativePostgres): string {
  const url = new URL(postgres.readerUrl);
  url.port = String(proxy.port);
  return url.href;
}

/** The log itself, watched on its way in. */
function watched(log: AuditLog, subject: string): AuditWatch & { readonly log: AuditLog } {
  const open = new Set<string>();
  let decisions = 0;
  const note = (entry: AuditEntry): void => {
    if (entry.kind === 'decision' && entry.subject === subject) decisions++;
    if (entry.kind === 'decision' && entry.decision === 'allow') open.add(entry.request_id);
    if (entry.kind === 'outcome') open.delete(entry.request_id);
  };
  return {
    get decisions() {
      return decisions;
    },
    get open() {
      return open.size;
    },
    log: watchedLog(log, note),
  };
}

const OURS = `application_name = 'osl-gateway' AND datname = current_database()`;

/** Asks the upstream itself, around every proxy; connects anew where the upstream was down meanwhile. */
class Backends {
  readonly #url: string;
  #client: Client | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  async list(): Promise<readonly { readonly pid: number; readonly state: string }[]> {
    const client = this.#client ?? (await this.#connect());
    const { rows } = await client.query<{ pid: number; state: string }>(
      `SELECT pid, state FROM pg_stat_activity WHERE ${OURS} ORDER BY pid`,
    );
    return rows;
  }

  async terminate(): Promise<void> {
    const client = this.#client ?? (await this.#connect());
    await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${OURS}`);
  }

  async end(): Promise<void> {
    await this.#client?.end();
  }

  async #connect(): Promise<Client> {
    const client = new Client({ connectionString: this.#url });
    client.on('error', () => {
      this.#client = null;
    });
    await client.connect();
    this.#client = client;
    return client;
  }
}
