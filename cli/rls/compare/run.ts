import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Relation, ready } from 'osl-compiler';
import { parse, stringify } from 'yaml';
import { nameFrom } from '../../../src/model/manifest/index.js';
import { loadModel } from '../../../src/service/model.js';
import { openService } from '../../../src/service/open.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { createHttpServer } from '../../../src/surfaces/http/server.js';
import { EXIT, usage } from '../../exit.js';
import { openIssuer } from '../../issuer.js';
import { operatorLog } from '../../log.js';
import { print, printJson } from '../../output.js';
import { type CheckedDatabase, checkedDatabase } from '../checked-database.js';
import { catalogOf, type DatabaseFlags, openDatabase, scopeOf, urlOf } from '../database.js';
import { importedPolicy } from '../import/draft.js';
import { attributesOfCaller, type ComparedCaller, callersIn } from './callers.js';
import { type Comparison, compared, comparisonText } from './comparison.js';
import { rowsOfGateway, rowsUnderRowSecurity, sampledRows } from './rows.js';
import { sampledCallers } from './sampled-callers.js';

export interface RlsCompareFlags extends DatabaseFlags {
  readonly callers?: string;
  readonly sample: number;
  readonly rows: number;
  /** Rows of each table that are compared; undefined for all. */
  readonly sampleRows?: number;
  readonly json?: boolean;
}

/**
 * Compares the rows of callers under row security with those through the gateway, for each entity that their role may
 * read in the database or is granted, and sets exit status 1 unless the gateway shows the same rows, or fewer.
 *
 * @throws Failure for wrong flags and a database that cannot be reached; the errors of `loadModel` and `openService`
 */
export async function runRlsCompare(folder: string, flags: RlsCompareFlags): Promise<void> {
  await ready();
  const dir = resolve(process.cwd(), folder);
  const url = await urlOf(flags);
  const survey = await openDatabase(url);
  try {
    const catalog = await catalogOf(survey);
    const files = [join(dir, 'manifest.yaml'), join(dir, 'policy.yaml')] as const;
    const { manifest, snapshot } = await loadModel(...files, null);
    if (snapshot === null) throw usage(`${files[1]} is no policy`);
    const database = checkedDatabase(catalog, scopeOf(flags, catalog));
    const { attributes } = importedPolicy({ database, manifest, tenant: snapshot.tenant });
    const roles = database.roles
      .filter(({ name }) => snapshot.roles.has(nameFrom(name)))
      .map(({ name }) => name);
    const callers =
      flags.callers === undefined
        ? await sampledCallers(survey.system, { manifest, snapshot }, attributes, roles, flags.sample)
        : callersIn(flags.callers);
    const subjects = callers.map((caller) => ({
      ceiling: [nameFrom(caller.role)],
      attributes: attributesOfCaller(caller, attributes),
    }));
    const found: Comparison[] = [];
    await withGateway(files, subjects, flags.rows, async (gateway) => {
      for (const relation of manifest.catalog.relations.values()) {
        const isCompared = ({ role }: ComparedCaller): boolean =>
          snapshot.roles.get(nameFrom(role))?.grants.has(relation.name) === true ||
          mayRead(role, relation, database);
        const own = [...callers.entries()].filter(([, caller]) => isCompared(caller));
        if (relation.kind === 'facet' || own.length === 0) continue;
        const size = flags.sampleRows;
        const sample = size === undefined ? null : await sampledRows(survey.system, relation, size);
        for (const [i, caller] of own) {
          const under = await rowsUnderRowSecurity(survey.system, relation, caller, flags.rows, sample);
          const token = await gateway.token(i);
          const through = await rowsOfGateway(gateway.url, token, relation, flags.rows, sample);
          found.push(compared(caller, relation, under, through));
        }
      }
    });
    report(found, callers, flags);
  } finally {
    survey.close();
  }
}

/** True if the role may read some column of the entity's table. */
function mayRead(
  role: string,
  { schema, table }: Relation,
  { roles, access, relationNamed }: CheckedDatabase,
): boolean {
  const [known, found] = [roles.find(({ name }) => name === role), relationNamed({ schema, name: table })];
  return known !== undefined && found !== null && access.columns(known.id, 'SELECT', found).length > 0;
}

function report(
  found: readonly Comparison[],
  callers: readonly ComparedCaller[],
  { json }: RlsCompareFlags,
): void {
  if (json === true) printJson({ callers: callers.length, comparisons: found });
  else for (const line of comparisonText(found, callers.length)) print(line);
  if (found.some(({ result }) => result === 'differs' || result === 'wider')) process.exitCode = EXIT.failed;
}

interface Gateway {
  readonly url: string;
  /** A token of the caller's subject. */
  token(caller: number): Promise<string>;
}

/** Serves the files over REST in this process, with a subject for each caller, and removes all of it afterwards. */
async function withGateway(
  [manifestFile, policyFile]: readonly [string, string],
  subjects: readonly object[],
  most: number,
  work: (gateway: Gateway) => Promise<void>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-compare-'));
  try {
    const own = join(dir, 'policy.yaml');
    const nameOf = (i: number): string => `caller:${i + 1}`;
    const named = Object.fromEntries(subjects.map((subject, i) => [nameOf(i), subject]));
    const policy: unknown = parse(readFileSync(policyFile, 'utf8'));
    const limits = { query: 1_000_000 };
    writeFileSync(own, stringify({ ...Object(policy), subjects: named, limits }));
    // Only the connectors' variables are those of this process.
    const settings = settingsFrom({ OSL_MAX_ROWS: `${most + 1}` }, dir, {
      manifestFile,
      policyFile: own,
      dataDir: join(dir, 'data'),
    });
    const open = await openService(settings, operatorLog());
    try {
      const rest = await createHttpServer(open.service);
      try {
        const { port } = await rest.listen(0, '127.0.0.1');
        const issuer = await openIssuer(settings, own);
        const token = async (i: number): Promise<string> => (await issuer.mint({ subject: nameOf(i) })).token;
        await work({ url: `http://127.0.0.1:${port}`, token });
      } finally {
        await rest.close(0);
      }
    } finally {
      await open.close();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
