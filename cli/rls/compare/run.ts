import { type Relation, ready } from 'osl-compiler';
import type { PolicySnapshot } from '../../../policy/index.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import { type Manifest, nameFrom } from '../../../src/model/manifest/index.js';
import { createHttpServer } from '../../../src/surfaces/http/server.js';
import { EXIT } from '../../exit.js';
import { counted, print, printJson, visible } from '../../output.js';
import {
  type CheckedDatabase,
  type DatabaseFlags,
  type FolderModel,
  loadFolder,
  urlOf,
  withDatabase,
} from '../database.js';
import { type ImportedPolicy, importedPolicy } from '../import/draft.js';
import type { TableView } from '../import/view-plan.js';
import {
  type ComparedCaller,
  comparedCallers,
  rolesOfPolicy,
  subjectOf,
  withServedFiles,
} from './callers.js';
import {
  type ComparedColumns,
  comparedColumns,
  rowsOfGateway,
  rowsUnderRowSecurity,
  type SampledRow,
  sampledRows,
  type VisibleRows,
} from './rows.js';

export interface RlsCompareFlags extends DatabaseFlags {
  readonly callers?: string;
  readonly sample: number;
  readonly rows: number;
  /** Number of rows to compare in each table; undefined for all. */
  readonly sampleRows?: number;
  readonly json?: boolean;
}

/**
 * Compares the rows visible to callers under row security with those visible through the gateway, for each entity that
 * their role may read in the database or is granted. Sets exit status 1 if the gateway shows a row that row security
 * hides.
 *
 * @throws Failure for wrong flags and a database that cannot be reached; the errors of `loadModel` and `openService`
 */
export async function runRlsCompare(folder: string, flags: RlsCompareFlags): Promise<void> {
  await ready();
  await withDatabase(await urlOf(flags), flags, async (database, system) => {
    const model = await loadFolder(folder);
    const { manifest, snapshot } = model;
    const { attributes, views } = importedPolicy({ database, manifest, tenant: snapshot.tenant });
    const roles = rolesOfPolicy(database, snapshot);
    const callers = await comparedCallers(system, model, attributes, roles, flags);
    const subjects = callers.map((caller) => subjectOf(caller, attributes));
    const found: RlsComparison[] = [];
    const samples = new Samples(system, flags.sampleRows ?? null);
    await withGateway(model, subjects, flags.rows, async (gateway) => {
      for (const [i, caller] of callers.entries()) {
        const token = await gateway.token(i);
        for (const [name, columns] of entitiesOf(caller, { manifest, snapshot, views }, database)) {
          if (columns === null) {
            found.push(notCompared(caller, name));
            continue;
          }
          const sample = await samples.of(columns);
          const under = await rowsUnderRowSecurity(system, columns, caller, flags.rows, sample);
          const through = await rowsOfGateway(gateway.url, token, columns, flags.rows, sample);
          found.push(compared(caller, columns, under, through));
        }
      }
    });
    report(found, callers, flags);
  });
}

/** Entities that a role may read by the policy or in the database, with the columns to compare; null if none. */
function entitiesOf(
  { role }: ComparedCaller,
  { manifest, snapshot, views }: ComparedModel,
  database: CheckedDatabase,
): readonly (readonly [string, ComparedColumns | null])[] {
  const granted = snapshot.roles.get(nameFrom(role))?.grants;
  return [...manifest.catalog.relations.values()].flatMap((relation) => {
    const { name, kind } = relation;
    const view = views.get(name) ?? null;
    const grants = granted?.get(name);
    if (kind === 'facet' || (grants === undefined && !mayRead(role, relation, view, database))) return [];
    // Without a grant any columns will do, because the gateway must show no rows.
    const columns =
      grants?.flatMap((grant) => [...grant.columns]) ?? relation.columns.map((column) => column.name);
    return [[name, comparedColumns(relation, view, new Set(columns))] as const];
  });
}

interface ComparedModel extends Pick<ImportedPolicy, 'views'> {
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/** True if the role may read some column of the entity's table or view. */
function mayRead(
  role: string,
  { schema, table }: Relation,
  view: TableView | null,
  { roles, access, relationNamed }: CheckedDatabase,
): boolean {
  const known = roles.find(({ name }) => name === role);
  const found = view?.view ?? relationNamed({ schema, name: table });
  return known !== undefined && found !== null && access.columns(known.id, 'SELECT', found).length > 0;
}

/** The rows to compare in each table, sampled once and used for all callers. */
class Samples {
  readonly #system: SystemEngine;
  readonly #size: number | null;
  readonly #rows = new Map<string, Promise<readonly SampledRow[]>>();

  /** @param size number of rows for each table; null: all */
  constructor(system: SystemEngine, size: number | null) {
    this.#system = system;
    this.#size = size;
  }

  /** Returns the rows to compare; null: all rows, as for views and entities that are not compared by key. */
  async of(columns: ComparedColumns): Promise<readonly SampledRow[] | null> {
    if (this.#size === null || !columns.isKey || columns.isOfView) return null;
    const rows = this.#rows.get(columns.entity) ?? sampledRows(this.#system, columns, this.#size);
    this.#rows.set(columns.entity, rows);
    return rows;
  }
}

function report(
  found: readonly RlsComparison[],
  callers: readonly ComparedCaller[],
  { json }: RlsCompareFlags,
): void {
  if (json === true) printJson({ callers: callers.length, comparisons: found });
  else for (const line of comparisonText(found, callers.length)) print(line);
  if (found.some(({ result }) => result === 'differs' || result === 'wider')) process.exitCode = EXIT.failed;
}

interface ComparedGateway {
  readonly url: string;
  /** Mints a token for the subject of a caller. */
  token(caller: number): Promise<string>;
}

/** Serves the files over REST in this process while `work` runs, with a subject for each caller. */
function withGateway(
  { manifestFile, policyFile }: FolderModel,
  subjects: readonly object[],
  most: number,
  work: (gateway: ComparedGateway) => Promise<void>,
): Promise<void> {
  return withServedFiles({ manifestFile, policyFile, subjects, maxRows: most + 1 }, async (opened) => {
    const rest = await createHttpServer(opened.service);
    try {
      const { port } = await rest.listen(0, '127.0.0.1');
      await work({ url: `http://127.0.0.1:${port}`, token: opened.token });
    } finally {
      await rest.close(0);
    }
  });
}

/** Result of comparing the rows of one entity for one caller. */
export interface RlsComparison {
  readonly caller: string;
  readonly role: string;
  readonly entity: string;
  /** `narrower`: the gateway hides rows that row security shows. `wider`: the reverse. `differs`: both. */
  readonly result: 'equal' | 'narrower' | 'wider' | 'differs' | 'unknown';
  /** Number of rows visible in the database; null if unknown. */
  readonly database: number | null;
  readonly gateway: number | null;
  /** Key of a row visible only through the gateway, as JSON; null if no such row exists or no key is compared. */
  readonly more: string | null;
  /** Key of a row visible only in the database, as JSON; null in the same cases. */
  readonly less: string | null;
  /** Reason why the rows of one side are unknown or could not be compared; otherwise null. */
  readonly reason: string | null;
}

function compared(
  { name: caller, role }: ComparedCaller,
  { entity, isKey }: ComparedColumns,
  under: VisibleRows,
  through: VisibleRows,
): RlsComparison {
  const of = { caller, role, entity };
  if (under.kind === 'unknown' || through.kind === 'unknown') {
    const fails = under.kind === 'unknown' ? under.reason : null;
    const refuses = through.kind === 'unknown' ? through.reason : null;
    // If the query fails in the database, the role sees no row there, so the gateway must not show one either.
    if (fails !== null && through.kind === 'rows' && through.keys.size > 0)
      return {
        ...of,
        result: 'wider',
        database: null,
        gateway: through.keys.size,
        more: isKey ? first(through.keys) : null,
        less: null,
        reason: fails,
      };
    return unknown(of, fails ?? refuses ?? '');
  }
  const more = [...through.keys].find((key) => !under.keys.has(key)) ?? null;
  const less = [...under.keys].find((key) => !through.keys.has(key)) ?? null;
  const result = more === null ? (less === null ? 'equal' : 'narrower') : less === null ? 'wider' : 'differs';
  const [database, gateway] = [under.keys.size, through.keys.size];
  const keys = isKey ? { more, less } : { more: null, less: null };
  return { ...of, result, database, gateway, ...keys, reason: null };
}

/** Result for an entity without columns by which its rows could be compared. */
function notCompared({ name: caller, role }: ComparedCaller, entity: string): RlsComparison {
  return unknown({ caller, role, entity }, 'no column without a mask could be compared');
}

function unknown(of: Pick<RlsComparison, 'caller' | 'role' | 'entity'>, reason: string): RlsComparison {
  return { ...of, result: 'unknown', database: null, gateway: null, more: null, less: null, reason };
}

function first(keys: ReadonlySet<string>): string | null {
  const [key = null] = keys;
  return key;
}

/** Formats the differences and a summary line for users. */
function comparisonText(found: readonly RlsComparison[], callers: number): readonly string[] {
  const count = (result: RlsComparison['result']): number =>
    found.filter((one) => one.result === result).length;
  const rows = found.reduce((sum, { database }) => sum + (database ?? 0), 0);
  const lines = found.filter(({ result }) => result !== 'equal').map(lineOf);
  return [
    ...lines,
    `${counted(callers, 'caller', 'callers')}, ${counted(found.length, 'comparison', 'comparisons')}, ${counted(rows, 'row', 'rows')}: ` +
      `${count('equal')} equal, ${count('narrower')} narrower, ${count('wider')} wider, ${count('differs')} different, ${count('unknown')} unknown`,
  ];
}

function lineOf({ result, caller, entity, database, gateway, more, less, reason }: RlsComparison): string {
  const numbers =
    database === null || gateway === null
      ? ''
      : `: ${database} in the database, ${gateway} through the gateway`;
  const rows = [
    more === null ? [] : [`the row ${more} through the gateway alone`],
    less === null ? [] : [`the row ${less} in the database alone`],
  ].flat();
  const row = rows.length === 0 ? '' : `, such as ${rows.join(' and ')}`;
  return visible(`${result}: ${entity} for ${caller}${numbers}${row}${reason === null ? '' : `: ${reason}`}`);
}
