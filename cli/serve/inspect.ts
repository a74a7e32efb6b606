import { messageOf } from '../../src/base/thrown.js';
import type { OutOfServiceCause } from '../../src/engine/index.js';
import { groupedBy } from '../../src/model/graph/index.js';
import { keylessEntities, type Manifest, tableName } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import type { OpenService } from '../../src/service/open.js';
import type { Service } from '../../src/service/service.js';
import type { Settings } from '../../src/service/settings.js';
import { findDrift, inspectDatabases, type MissingObject } from '../doctor/database.js';
import type { DoctorFinding } from '../doctor/finding.js';
import { dataDirFindings, issuerFindings, keyFindings, tlsFindings } from '../doctor/machine.js';

export type InspectedService = Pick<OpenService, 'service' | 'databases' | 'record'>;

/**
 * Runs the checks of `osl doctor`, logs warnings, and takes missing objects out of service. Never prevents a start:
 * anything that cannot be checked is served.
 */
export async function inspect(open: InspectedService, settings: Settings): Promise<void> {
  const { service } = open;
  const { log, engines } = service;
  const model = service.model();
  const keyless = keylessEntities(model.manifest);
  if (keyless !== null) log.warn(keyless, { about: 'manifest' });
  try {
    const { findings, gone } = await inspectDatabases(reachableModel(model, engines), settings);
    for (const connector of engines.keys()) {
      const found = gone.get(connector);
      if (found !== undefined)
        await takeOutOfService(open, connector, missingIn(model.manifest, connector, found));
    }
    const told = new Set([...engines.values()].flatMap((engine) => engine.warnings));
    warnOf(
      [
        ...findings,
        ...[dataDirFindings, keyFindings, tlsFindings, issuerFindings].flatMap((of) => of(settings)),
      ],
      (finding) => !told.has(finding.message),
      service,
    );
  } catch (error) {
    log.warn('the databases could not be looked at', {
      error: messageOf(error),
    });
  }
}

/** Leaves out connectors whose database is down; they are monitored elsewhere and inspected once they respond. */
function reachableModel({ manifest, snapshot }: Model, engines: Service['engines']): Model {
  const connectors = [...manifest.connectors].filter(([name]) => engines.get(name)?.reached !== false);
  return { manifest: { ...manifest, connectors: new Map(connectors) }, snapshot };
}

function warnOf(
  findings: readonly DoctorFinding[],
  isNew: (finding: DoctorFinding) => boolean,
  { log }: Service,
): void {
  for (const finding of findings) {
    if ((finding.state !== 'warn' && finding.state !== 'fail') || !isNew(finding)) continue;
    const { about, message, hint } = finding;
    log.warn(message, { about, ...(hint !== null && { hint }) });
  }
}

/** Compares the databases with the manifest once; those that cannot be checked keep their state. */
export async function inspectDrift(open: InspectedService): Promise<void> {
  const { service } = open;
  const { manifest } = service.model();
  for (const [connector, gone] of await findDrift({ manifest }))
    if (service.model().manifest === manifest)
      await takeOutOfService(open, connector, missingIn(manifest, connector, gone));
}

/** Takes exactly these objects of a connector out of service; changes are logged and recorded. */
async function takeOutOfService(
  { service, databases, record }: InspectedService,
  connector: string,
  missing: ReadonlyMap<string, MissingParts>,
): Promise<void> {
  const { log } = service;
  const database = databases.get(connector);
  if (database === undefined) return;
  const before = database.governed.status.outOfService;
  const out = [...missing].filter(([object, { cause }]) => before.get(object) !== cause);
  const back = [...before.keys()].filter((object) => !missing.has(object));
  database.takeOutOfService(new Map([...missing].map(([object, { cause }]) => [object, cause])));
  for (const [object, { cause, what }] of out)
    log.error('out of service until it is mended', { connector, object, [cause]: what });
  for (const object of back) log.warn('in service again', { connector, object });
  if (out.length + back.length === 0) return;
  const told = out.map(([object, { cause, what }]) => ({ object, cause, what }));
  await record('service.drift', { connector, out: told, back });
}

interface MissingParts {
  readonly cause: OutOfServiceCause;
  readonly what: readonly string[];
}

function missingIn(
  { catalog }: Manifest,
  connector: string,
  gone: readonly MissingObject[],
): ReadonlyMap<string, MissingParts> {
  const missing = new Map<string, MissingParts>();
  const goneIn = groupedBy(gone, ({ table }) => table);
  for (const relation of catalog.relations.values()) {
    if (relation.connector !== connector || relation.kind === 'facet') continue;
    const inTable = goneIn.get(tableName(relation)) ?? [];
    const physical = new Set(relation.columns.map((c) => c.physical));
    const found = inTable.filter(({ column }) => column === null || physical.has(column));
    if (found.length === 0) continue;
    const what = found.map(({ table, column }) => (column === null ? table : `${table}.${column}`));
    const cause = found.some((one) => one.cause === 'gone') ? 'gone' : 'changed';
    missing.set(relation.name, { cause, what });
  }
  return missing;
}
