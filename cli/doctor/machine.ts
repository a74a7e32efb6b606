import { existsSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { configuredKeys } from '../../policy/index.js';
import { type ControlPlace, controlUrl } from '../../src/base/control/url.js';
import { messageOf } from '../../src/base/thrown.js';
import { surveyPostgres } from '../../src/engine/index.js';
import { type IssuerConfig, loadIssuers } from '../../src/model/identity/issuers.js';
import { fetchDocument, fetchKeySet } from '../../src/model/identity/remote-keys.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import { archiveFault, configuredWitnesses } from '../../src/service/audit.js';
import { describeConnectFault, withoutPassword } from '../../src/service/connector-url.js';
import { openDashboards } from '../../src/service/dashboards.js';
import { exchangeKey, issuerKeys, newExchangeKey } from '../../src/service/issuer-keys.js';
import { existingKeys, tenantKeys } from '../../src/service/keys.js';
import { loadLineageConfig } from '../../src/service/lineage/config/load.js';
import type { Settings } from '../../src/service/settings.js';
import { poolSizeFor, workersFor } from '../../src/service/workers.js';
import { fetchHttp, localServerUrl } from '../client.js';
import { operatorLog } from '../log.js';
import { counted } from '../output.js';
import { checkedCertificate, type SurfaceCertificateFiles } from '../serve/certificates.js';
import { checkDataDir, checkPorts } from '../serve/ports.js';
import { isLoopback, runningServer, type ServerRecord } from '../server-file.js';
import { type DoctorFinding, fail, failed, ok, warn } from './finding.js';

const LITTLE_MIB = 1_024;

export function dataDirFindings({ dataDir }: Settings): readonly DoctorFinding[] {
  const about = 'data directory';
  try {
    checkDataDir(dataDir);
  } catch (error) {
    return [failed(about, error, 'choose another directory with --data-dir or OSL_DATA_DIR')];
  }
  if (!existsSync(dataDir)) return [ok(about, `${dataDir} will be created at the first start`)];
  const { bavail, bsize } = statfsSync(dataDir);
  const mib = Math.floor((bavail * bsize) / 1_048_576);
  const space =
    mib < LITTLE_MIB
      ? warn(
          about,
          `${dataDir} has only ${mib} MiB of free space`,
          'free some space: the gateway refuses all queries if it cannot write the audit log',
        )
      : ok(about, `${dataDir} is writable and has ${Math.floor(mib / 1_024)} GiB of free space`);
  return [space, ...secretFindings(join(dataDir, 'audit'))];
}

/** Findings about the keys; none before the first start, which makes them unless OSL_KEYS_DIR names a directory. */
export function keyFindings({ dataDir, keysDir }: Settings): readonly DoctorFinding[] {
  // Orchestrators mount secrets in a directory that others can list, with files that a group can read.
  const found =
    keysDir === null
      ? secretFindings(join(dataDir, 'keys'))
      : secretFindings(join(keysDir, 'signing.key'), 0o007);
  try {
    if (keysDir === null) existingKeys(dataDir);
    else tenantKeys(dataDir, keysDir);
    return found;
  } catch (error) {
    return [...found, failed('keys', error)];
  }
}

/** Findings about the databases of the audit log, of the policy and of rate limits, if they are shared. */
export async function storeFindings({ audit, control, load }: Settings): Promise<readonly DoctorFinding[]> {
  const { table } = audit.sink;
  const findings = new Map<string, DoctorFinding>();
  for (const [variable, place] of [
    ['OSL_AUDIT_URL', table?.place],
    ['OSL_CONTROL_URL', control?.place],
    // Without a store of their own, rate limits are counted in the control database.
    ['OSL_LIMITS_URL', load.limits?.kind === 'postgres' ? load.limits.at : undefined],
  ] as const) {
    const key = JSON.stringify(place);
    if (place !== undefined && !findings.has(key)) findings.set(key, await storeFinding(variable, place));
  }
  return [...findings.values()];
}

async function storeFinding(variable: string, place: ControlPlace): Promise<DoctorFinding> {
  try {
    const url = controlUrl(place, variable);
    (await surveyPostgres(url)).close();
    return ok(variable, `${withoutPassword(url)} answers`);
  } catch (error) {
    return fail(
      variable,
      describeConnectFault(error),
      'a gateway that starts while it is away answers no query',
    );
  }
}

function secretFindings(path: string, others = 0o077): readonly DoctorFinding[] {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode === undefined || (mode & others) === 0) return [];
  return [
    warn(
      'data directory',
      `other users of this machine can read ${path}, which holds secrets`,
      `chmod -R go-rwx ${path}`,
    ),
  ];
}

export async function archiveFindings({ audit }: Settings): Promise<readonly DoctorFinding[]> {
  if (audit.keeping.archive === null) return [];
  const fault = await archiveFault(audit);
  return fault === null
    ? [ok('audit archive', `${audit.keeping.archive} is writable`)]
    : [fail('audit archive', fault, 'create the directory, and set OSL_AUDIT_RETENTION_DAYS above 0')];
}

export async function portFindings(settings: Settings): Promise<readonly DoctorFinding[]> {
  const running = runningServer(settings.dataDir);
  if (running !== null) return [await healthOf(running)];
  try {
    await checkPorts(settings);
    return [
      ok('ports', `${settings.httpPort} (REST) and ${settings.pgPort} (wire) of ${settings.host} are free`),
    ];
  } catch (error) {
    return [failed('ports', error)];
  }
}

async function healthOf(record: ServerRecord): Promise<DoctorFinding> {
  const url = `${localServerUrl(record)}/ready`;
  const who = `the server of this data directory (process ${record.pid})`;
  try {
    const { status } = await fetchHttp(url, { headers: {}, signal: AbortSignal.timeout(5_000) });
    if (status === 200) return ok('server', `${who} is ready`);
    return fail('server', `${who} runs, but is not ready (status ${status})`, `curl ${url} shows the reason`);
  } catch {
    return fail('server', `${who} does not answer at ${url}`);
  }
}

const SOON_MS = 14 * 86_400_000;

export function tlsFindings({ tls, host }: Settings): readonly DoctorFinding[] {
  const about = 'TLS';
  const local = isLoopback(host);
  if (tls.wire === null && tls.http === null && local)
    return [ok(about, 'not needed: the server listens on this machine only')];
  const { wire, http } = tls;
  const findings: DoctorFinding[] = [];
  if (http === null && !local)
    findings.push(
      warn(
        about,
        `REST listens on ${host} without TLS: tokens and rows can be read on the network`,
        'set OSL_TLS_CERT and OSL_TLS_KEY, or use a TLS proxy',
      ),
    );
  if (wire === null && !local) {
    const message = 'the Postgres port has no TLS and refuses clients from other machines';
    findings.push(fail(about, message, 'set OSL_TLS_CERT and OSL_TLS_KEY'));
  }
  const files = new Map(
    [wire, http].flatMap((one) => (one === null ? [] : [[one.certFile, { ...one, clients: tls.clients }]])),
  );
  return [...findings, ...[...files.values()].map(certificateFinding)];
}

function certificateFinding(files: SurfaceCertificateFiles): DoctorFinding {
  const about = 'TLS';
  const { certFile } = files;
  try {
    const { until } = checkedCertificate(files);
    const ends = Date.parse(until);
    if (ends < Date.now()) return fail(about, `${certFile} expired on ${until}`, 'renew the certificate');
    if (ends < Date.now() + SOON_MS)
      return warn(about, `${certFile} expires on ${until}`, 'renew the certificate');
    return ok(about, `${certFile} is valid until ${until}`);
  } catch (error) {
    return failed(about, error);
  }
}

export function issuerFindings({
  publicKeyFiles,
  issuersFile,
  localTokens,
}: Settings): readonly DoctorFinding[] {
  const about = 'issuers';
  if (publicKeyFiles.length === 0 && issuersFile === null)
    return localTokens
      ? [ok(about, 'only tokens of this gateway (`osl token`) are accepted')]
      : [fail(about, 'no token is accepted: OSL_LOCAL_TOKENS is off and no issuer is configured')];
  const own = localTokens
    ? [warn(about, 'OSL_LOCAL_TOKENS=on: anyone who can read the key of this gateway can be any subject')]
    : [];
  const files = publicKeyFiles.map((named) => {
    try {
      const keys = issuerKeys(named);
      configuredKeys({ keys });
      return ok(about, `${named.file} has ${counted(keys.length, 'public key', 'public keys')}`);
    } catch (error) {
      return failed(about, error, 'keys must be for RS256, ES256 or EdDSA');
    }
  });
  return [...own, ...files];
}

export async function issuersFileFindings({ issuersFile }: Settings): Promise<readonly DoctorFinding[]> {
  const about = 'issuers';
  if (issuersFile === null) return [];
  try {
    return await Promise.all((await loadIssuers(issuersFile)).map(issuerFinding));
  } catch (error) {
    return [failed(about, error)];
  }
}

/** Faults in other files and values that a start reads; no finding if there are none. */
export async function startFindings(settings: Settings): Promise<readonly DoctorFinding[]> {
  const { lineageFile, audit } = settings;
  return faultsOf([
    ['log', operatorLog],
    ['exchange', () => exchangeKey(settings, newExchangeKey())],
    ['lineage', () => (lineageFile === null ? null : loadLineageConfig(lineageFile))],
    ['witnesses', () => checkWitnesses(audit.keeping.witnesses)],
  ]);
}

/** Faults in the number of workers and in the sizes of pools; no finding if there are none. */
export function poolFindings(settings: Settings, manifest: Manifest): Promise<readonly DoctorFinding[]> {
  const connectors = [...manifest.connectors.values()].filter(({ kind }) => kind === 'postgres');
  return faultsOf([
    ['pools', () => connectors.map((connector) => poolSizeFor(connector, settings.poolSize))],
    ['workers', () => workersFor(settings, manifest)],
  ]);
}

async function checkWitnesses(places: readonly string[]): Promise<void> {
  for (const witness of await configuredWitnesses(places)) await witness.close();
}

type StartCheck = readonly [about: string, check: () => unknown];

async function faultsOf(checks: readonly StartCheck[]): Promise<readonly DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  for (const [about, check] of checks)
    try {
      await check();
    } catch (error) {
      findings.push(failed(about, error));
    }
  return findings;
}

export async function dashboardFindings({ dashboardsDir }: Settings): Promise<readonly DoctorFinding[]> {
  const about = 'dashboards';
  if (dashboardsDir === null) return [];
  try {
    const all = (await openDashboards(dashboardsDir)).all();
    return [ok(about, counted(all.length, 'shared dashboard', 'shared dashboards'))];
  } catch (error) {
    return [failed(about, error)];
  }
}

async function issuerFinding({ names, keys, tokens }: IssuerConfig): Promise<DoctorFinding> {
  const about = 'issuers';
  const [name = ''] = names;
  try {
    const found =
      keys.kind === 'files'
        ? keys.files.flatMap((file) => issuerKeys({ kid: null, file }))
        : await fetchKeySet(name, keys.url === null ? null : new URL(keys.url), fetchDocument);
    return ok(about, `${name} signs ${tokens} tokens: ${counted(found.length, 'public key', 'public keys')}`);
  } catch (error) {
    return fail(about, `the keys of ${name} cannot be fetched: ${messageOf(error)}`);
  }
}
