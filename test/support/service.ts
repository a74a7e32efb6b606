import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type AuditRecord, type AuditVerdict, readRecords, verifyAuditLog } from '../../audit/index.js';
import { mintToken } from '../../policy/index.js';
import type { ServiceLog } from '../../src/base/log.js';
import { generatedSql } from '../../src/base/sql.js';
import type { OpenedEngine } from '../../src/engine/index.js';
import { type OpenService, openService } from '../../src/service/open.js';
import type { Service } from '../../src/service/service.js';
import { type Settings, settingsFrom } from '../../src/service/settings.js';
import { emptyDatabases } from './embedded-data.js';
import { type NativePostgres, startNativePostgres } from './native-postgres.js';
import { SHOP_MANIFEST, SHOP_POLICY, SHOP_SCRIPT } from './shop.js';
import { holdToDocument } from './stated-statuses.js';

export interface TestServiceOptions {
  /** The native server to stand on; its caller stops it. */
  readonly postgres?: NativePostgres;
  /** On the embedded engine, whatever the run stands on: the test is about it, or needs pgvector. */
  readonly embedded?: boolean;
  /** YAML; the shop's unless told. `kind: pglite` in it becomes `kind: postgres` where `postgres` is given. */
  readonly manifest?: string;
  readonly policy?: string;
  /** SQL that makes and fills the tables. */
  readonly script?: string;
  /** The schema that the governed role may read. */
  readonly schema?: string;
  readonly settings?: Partial<Settings>;
}

/** What a token says beside its subject. Data roles are the subject's whole ceiling unless told. */
export interface TokenClaims {
  readonly chain?: readonly string[];
  readonly aclRoles?: readonly string[];
  readonly roles?: readonly string[];
  readonly issuedAt?: number;
  readonly tenant?: string;
  readonly others?: Readonly<Record<string, unknown>>;
}

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A real service over a temporary directory. */
export interface TestService {
  readonly open: OpenService;
  readonly service: Service;
  readonly engine: OpenedEngine;
  /** Where the audit log is. */
  readonly auditDir: string;
  readonly policyFile: string;
  /** What the operator was told. */
  readonly lines: readonly LogLine[];
  /** Mints a token with the service's own key. */
  token(subject: string, claims?: TokenClaims): Promise<string>;
  /** The audit log so far; or the records of one request, whose outcome may be written after its answer: waits for it. */
  records(requestId?: string): Promise<AuditRecord[]>;
  /** What the independent verifier says of the log. */
  verdict(): Promise<AuditVerdict>;
  close(): Promise<void>;
}

const URL_ENV = 'OSL_TEST_SERVICE_URL';

/**
 * Opens a service with the shop's tables, or with what `options` give instead, in a database of its own on the native
 * server of this run; without one, or with OSL_TEST_ENGINE=pglite, on the embedded engine.
 */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  if (options.postgres !== undefined || options.embedded === true) return startOn(options);
  const postgres = await nativeOfRun();
  if (postgres === null) return startOn(options);
  try {
    const started = await startOn({ ...options, postgres });
    const close = async (): Promise<void> => {
      await started.close();
      await postgres.stop();
    };
    return { ...started, close };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** A database on the native server of this run; null where there is none, or OSL_TEST_ENGINE=pglite asks for the embedded engine. */
export async function nativeOfRun(): Promise<NativePostgres | null> {
  if (engineOfRun() !== 'postgres') return null;
  const postgres = await startNativePostgres();
  if (postgres === null) throw new Error('OSL_TEST_ENGINE=postgres needs a native Postgres');
  return postgres;
}

/** The engine of services that do not ask for one, `postgres` or `pglite`. */
export const engineOfRun = (): string =>
  process.env['OSL_TEST_ENGINE'] ?? (process.env['OSL_TEST_POSTGRES_URL'] ? 'postgres' : 'pglite');

async function startOn(options: TestServiceOptions): Promise<TestService> {
  holdToDocument();
  const dir = mkdtempSync(join(tmpdir(), 'osl-service-'));
  const lines: LogLine[] = [];
  try {
    const chosen = settings(dir, options);
    if (options.postgres === undefined)
      await emptyDatabases(chosen.dataDir, options.manifest ?? SHOP_MANIFEST);
    const open = await openService(chosen, recorder(lines));
    const engine = await filled(open, options);
    return testService(dir, open, engine, lines);
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

function settings(dir: string, options: TestServiceOptions): Settings {
  const manifest = options.manifest ?? SHOP_MANIFEST;
  const native = options.postgres;
  const variable = `${URL_ENV}_${randomBytes(4).toString('hex').toUpperCase()}`;
  if (native !== undefined) nameServer(native, variable);
  const manifestFile = join(dir, 'manifest.yaml');
  const policyFile = join(dir, 'policy.yaml');
  writeFileSync(manifestFile, native === undefined ? manifest : onPostgres(manifest, variable));
  writeFileSync(policyFile, options.policy ?? SHOP_POLICY);
  return settingsFrom({}, dir, { manifestFile, policyFile, dataDir: join(dir, 'data'), ...options.settings });
}

/** Says in the environment where the connectors of `onPostgres` are. */
export function nameServer(native: NativePostgres, variable: string): void {
  process.env[variable] = native.readerUrl;
  process.env[`${variable}_SYSTEM`] = native.url;
}

/** The manifest with its connectors on a native server, whichever way its YAML writes them. */
export function onPostgres(manifest: string, variable: string): string {
  return manifest
    .replace(/kind: pglite(?=\s*[,}])/g, `kind: postgres, url_env: ${variable}`)
    .replace(/kind: pglite$/gm, `kind: postgres\n    url_env: ${variable}`);
}

function recorder(lines: LogLine[]): ServiceLog {
  const at =
    (level: LogLine['level']) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      lines.push({ level, message, fields });
    };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

async function filled(open: OpenService, options: TestServiceOptions): Promise<OpenedEngine> {
  try {
    const engine = open.databases.get(open.service.defaultConnector);
    if (engine === undefined) throw new Error('the service has no engine');
    await engine.system.script(generatedSql(options.script ?? SHOP_SCRIPT));
    await engine.system.grantRead(options.schema ?? 'shop');
    return engine;
  } catch (error) {
    await open.close();
    throw error;
  }
}

/** True if a decision that allows has no outcome yet. */
function isRunning(records: readonly AuditRecord[]): boolean {
  const count = (is: (record: AuditRecord) => boolean): number => records.filter(is).length;
  return count((r) => r.kind === 'outcome') < count((r) => r.kind === 'decision' && r.decision === 'allow');
}

function testService(
  dir: string,
  open: OpenService,
  engine: OpenedEngine,
  lines: readonly LogLine[],
): TestService {
  const { service, keys } = open;
  const auditDir = join(dir, 'data', 'audit');
  return {
    open,
    service,
    engine,
    auditDir,
    policyFile: join(dir, 'policy.yaml'),
    lines,
    token: (subject, claims = {}) => {
      const { tenant = service.tenant, chain = [subject], roles = [], issuedAt, others = {} } = claims;
      const ceiling = service.model().snapshot?.subjects.get(subject)?.ceiling ?? [];
      const time = issuedAt === undefined ? {} : { issuedAt };
      return mintToken(
        { tenant, chain, roles, aclRoles: claims.aclRoles ?? [...ceiling], others, ...time },
        { algorithm: 'HS256', secret: keys.signing },
      );
    },
    async records(requestId) {
      for (;;) {
        const records: AuditRecord[] = [];
        for await (const record of readRecords(auditDir)) {
          if (requestId === undefined || record.request_id === requestId) records.push(record);
        }
        if (requestId === undefined || !isRunning(records)) return records;
        await setTimeout(5);
      }
    },
    verdict: () => verifyAuditLog(auditDir),
    async close() {
      await open.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
