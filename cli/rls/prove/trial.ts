import { identifier } from 'osl-compiler/sql-text';
import { compileSnapshot, type PolicyDocument, PolicyProblems } from '../../../policy/index.js';
import { observe } from '../../policy-tests/observe.js';
import { UnfitRows } from '../../policy-tests/tables.js';
import { openTestService, type TestService } from '../../policy-tests/test-service.js';
import type { CheckedDatabase } from '../database.js';
import type { Example, ExampleRow } from './examples.js';
import type { ExampleTrial } from './prove-policy.js';
import { ScratchDatabase, type ScratchDefinitions } from './scratch.js';

export interface TrialFiles {
  readonly manifestFile: string;
  readonly policyFile: string;
}

/**
 * Runs examples: inserts the rows into an embedded database with the row security and into one behind the gateway with
 * the policy, and queries both as the caller. The databases are opened for the first example.
 */
export class ExampleTrials {
  readonly #openScratch: () => Promise<ScratchDatabase>;
  readonly #openService: () => Promise<TestService>;
  #scratch: Promise<ScratchDatabase> | null = null;
  #service: Promise<TestService> | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: CheckedDatabase, definitions: ScratchDefinitions, files: TrialFiles) {
    this.#openScratch = () => ScratchDatabase.open(database, definitions);
    this.#openService = () => openTestService({ ...files, data: new Map() });
  }

  /** Returns a function that runs examples for a policy, one at a time. */
  of(document: PolicyDocument): ExampleTrial {
    return (example) => {
      const result = this.#last.then(async () => {
        this.#service ??= this.#openService();
        const [scratch, service] = await Promise.all([this.#scratchFor(example), this.#service]);
        return difference(example, document, scratch, service);
      });
      this.#last = result.catch(() => undefined);
      return result;
    };
  }

  /** The open database, or a new one if the open session has had a setting that the example needs unset. */
  async #scratchFor(example: Example): Promise<ScratchDatabase> {
    this.#scratch ??= this.#openScratch();
    const open = await this.#scratch;
    if (open.isFresh(example)) return open;
    await open.close();
    this.#scratch = this.#openScratch();
    return this.#scratch;
  }

  async close(): Promise<void> {
    await (await this.#scratch)?.close();
    await (await this.#service)?.close();
  }
}

async function difference(
  example: Example,
  document: PolicyDocument,
  scratch: ScratchDatabase,
  service: TestService,
): Promise<string | null> {
  const under = await scratch.visibleRows(example);
  if (typeof under === 'string') return under;
  const through = await rowsThroughGateway(example, document, service);
  if (typeof through === 'string') return through;
  const shown = example.direction === 'more' ? through > under : through < under;
  return shown
    ? null
    : `the example shows no difference: ${through} through the gateway, ${under} in the database`;
}

/** Returns the number of rows that the caller sees through the gateway, or the reason why it is not known. */
async function rowsThroughGateway(
  example: Example,
  policy: PolicyDocument,
  service: TestService,
): Promise<number | string> {
  const { entity, row, others, caller, column } = example;
  const data = new Map<string, Readonly<Record<string, string | null>>[]>();
  for (const one of [{ entity, row }, ...others]) {
    const table = tableOf(one.entity, service);
    data.set(table, [...(data.get(table) ?? []), jsonOf(one.row)]);
  }
  try {
    await service.refill(data);
  } catch (error) {
    if (error instanceof UnfitRows)
      return `the embedded database does not take the example: ${error.message}`;
    throw error;
  }
  const subject = 'user:example';
  const attributes = Object.fromEntries(
    Object.entries(caller.attributes).filter(([name]) => !name.startsWith('(')),
  );
  const { catalog, tenant } = service.service.model().manifest;
  const document = {
    ...policy,
    subjects: { [subject]: { ceiling: [caller.policyRole], attributes } },
    roles: rolesFor(example, policy),
  };
  const snapshot = snapshotOf(document, catalog, tenant ?? document.tenant);
  if (typeof snapshot === 'string') return snapshot;
  const from = `osl.entities.${identifier(entity.name)}`;
  const rows = column === null ? from : `(select ${identifier(column)} from ${from}) as shown`;
  const text = `select count(*) as n from ${rows}`;
  const outcome = await observe(service, snapshot, {
    chain: [subject],
    roles: null,
    from: {},
    asked: { kind: 'osql', text },
  });
  if (outcome.kind === 'answer') return Number(outcome.rows[0]?.['n']);
  if (outcome.kind === 'refusal' && INVISIBLE.has(outcome.code)) return 0;
  return outcome.kind === 'refusal' ? `the gateway refuses: ${outcome.code} ${outcome.message}` : 'no answer';
}

/** The role with only its grants on the example's entity; other grants do not matter. */
function rolesFor({ caller, entity }: Example, { roles }: PolicyDocument): PolicyDocument['roles'] {
  const role = roles[caller.policyRole] ?? { grants: [] };
  const named = (on: string): boolean => on.replace(/^osl\.entities\./, '') === entity.name;
  return { [caller.policyRole]: { ...role, grants: role.grants.filter(({ on }) => named(on)) } };
}

/** Compiles the policy with the caller as a subject; returns the error as text if that fails. */
function snapshotOf(...[document, catalog, tenant]: Parameters<typeof compileSnapshot>) {
  try {
    return compileSnapshot(document, catalog, tenant);
  } catch (error) {
    if (error instanceof PolicyProblems) return `the policy cannot have the caller: ${error.message}`;
    throw error;
  }
}

/** Error codes for an entity or column on which the caller has no grant; the caller then sees no rows. */
const INVISIBLE: ReadonlySet<string> = new Set(['E0512', 'E2101', 'E2102']);

function jsonOf(row: ExampleRow): Readonly<Record<string, string | null>> {
  return Object.fromEntries(row);
}

/** Name of an entity's table in the form of `source` in the manifest: `connector.table`. */
function tableOf({ connector, schema, table }: Example['entity'], { service }: TestService): string {
  const tables = service.model().manifest.connectors.get(connector)?.tables ?? new Map();
  const found = [...tables].find(([, own]) => own.schema === schema && own.table === table);
  return `${connector}.${found?.[0] ?? table}`;
}
