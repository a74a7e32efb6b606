import { messageOf } from '../../../base/thrown.js';
import { keylessEntities, type Manifest, tableName } from '../../../model/manifest/index.js';
import type { Service } from '../../../service/service.js';
import type { Settings } from '../../../service/settings.js';
import { type Gone, inspectDatabases } from '../doctor/database.js';
import type { Finding } from '../doctor/finding.js';
import { dataDirFindings, issuerFindings, tlsFindings } from '../doctor/machine.js';

/**
 * Looks at what `osl doctor` looks at, warns of what is not well, and takes out of service what the databases no longer
 * have. Never keeps a server from starting: what it could not look at serves as it is.
 */
export async function inspect(service: Service, settings: Settings): Promise<void> {
  const { log, engines } = service;
  const model = service.model();
  const keyless = keylessEntities(model.manifest);
  if (keyless !== null) log.warn(keyless, { about: 'manifest' });
  try {
    const { findings, gone } = await inspectDatabases(model, settings);
    for (const [connector, engine] of engines) {
      const missing = missingIn(model.manifest, connector, gone.get(connector) ?? []);
      for (const [object, what] of missing)
        log.error('out of service until a reload finds it again', { connector, object, gone: what });
      engine.outOfService.replace(new Set(missing.keys()));
    }
    const told = new Set([...engines.values()].flatMap((engine) => engine.warnings));
    warnOf(
      [...findings, ...dataDirFindings(settings), ...tlsFindings(settings), ...issuerFindings(settings)],
      (finding) => !told.has(finding.message),
      service,
    );
  } catch (error) {
    log.warn('the databases could not be looked at', {
      error: messageOf(error),
    });
  }
}

function warnOf(findings: readonly Finding[], isNew: (finding: Finding) => boolean, { log }: Service): void {
  for (const finding of findings) {
    if ((finding.state !== 'warn' && finding.state !== 'fail') || !isNew(finding)) continue;
    const { about, message, hint } = finding;
    log.warn(message, { about, ...(hint !== null && { hint }) });
  }
}

/** Entities and bridges that rest on something that is gone, each with what. */
function missingIn(
  { catalog }: Manifest,
  connector: string,
  gone: readonly Gone[],
): ReadonlyMap<string, readonly string[]> {
  const missing = new Map<string, readonly string[]>();
  for (const relation of catalog.relations.values()) {
    if (relation.connector !== connector || relation.kind === 'facet') continue;
    const physical = new Set(relation.columns.map((c) => c.physical));
    const what = gone.filter(
      ({ table, column }) => table === tableName(relation) && (column === null || physical.has(column)),
    );
    if (what.length > 0)
      missing.set(
        relation.name,
        what.map(({ table, column }) => (column === null ? table : `${table}.${column}`)),
      );
  }
  return missing;
}
