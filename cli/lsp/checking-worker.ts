import { parentPort } from 'node:worker_threads';
import { type Catalog, type Relation, ready } from 'osl-compiler';
import {
  effectiveAccess,
  type GrantReason,
  hypotheticalClaims,
  NO_CIRCUMSTANCES,
  type PolicySnapshot,
  reasonsFor,
} from '../../policy/index.js';
import { stackOf } from '../../src/base/thrown.js';
import {
  type CatalogName,
  objectNamed,
  type Visibility,
  widestVisibility,
} from '../../src/model/graph/index.js';
import { functionEntries } from '../../src/model/graph/language.js';
import {
  type CheckReply,
  type CheckRequest,
  type CheckResults,
  type CheckTask,
  check,
  questionFaults,
  type ValidModel,
} from './check.js';

/** Compiles edited files off the thread that talks to the editor. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');

/** Last valid model by manifest file, used for hovers while the current one is invalid. */
const sound = new Map<string, ValidModel>();

await ready();
let last: Promise<void> = Promise.resolve();
port.on('message', ({ id, task }: CheckRequest) => {
  last = last.then(async () => port.postMessage(await answered(id, task)));
});

async function answered(id: number, task: CheckTask): Promise<CheckReply> {
  try {
    return { id, result: await done(task) };
  } catch (error) {
    return { id, failed: stackOf(error) };
  }
}

async function done(task: CheckTask): Promise<CheckResults[CheckTask['kind']]> {
  switch (task.kind) {
    case 'check': {
      const checked = await check(task.project, new Map(task.open));
      const { manifestFile } = task.project;
      // If only the policy is invalid now, keep its last valid version.
      const before = sound.get(manifestFile);
      if (checked.sound !== null)
        sound.set(manifestFile, {
          ...checked.sound,
          snapshot: checked.sound.snapshot ?? before?.snapshot ?? null,
        });
      return { diagnostics: checked.diagnostics, names: checked.names, functions: functionEntries() };
    }
    case 'visibility': {
      const model = sound.get(task.manifestFile);
      return model === undefined ? null : visibilityText(task.object, model);
    }
    case 'questions': {
      const model = sound.get(task.manifestFile);
      return model === undefined ? null : questionFaults(task.text, model, task.subject);
    }
  }
}

/** Maximum number of subjects to check; a policy may have many thousands. */
const MOST_SUBJECTS = 500;
const MOST_NAMED = 6;

const WORDS: Readonly<Record<Exclude<Visibility, 'nothing'>, string>> = {
  clear: 'in the clear',
  partly_masked: 'masked in some rows',
  masked: 'masked',
  aggregates: 'in aggregates only',
};

/**
 * Markdown that lists who may see an object now and through which grants: up to `MOST_SUBJECTS` subjects, each acting
 * for itself with all its roles. Null if the manifest has no such object.
 */
function visibilityText(name: string, { manifest: { catalog }, snapshot }: ValidModel): string | null {
  const object = objectNamed(name);
  const relation = catalog.relations.get(object.relation);
  if (relation === undefined) return null;
  const label = labelOf(relation, object.column);
  if (label === undefined) return null;
  if (snapshot === null) return 'Who may see it is not known: the policy is missing or wrong.';
  const seen = [...visibilities(object, relation, snapshot, catalog)];
  const blind = seen.filter(({ visibility }) => visibility === 'nothing').length;
  const lines = (['clear', 'partly_masked', 'masked', 'aggregates'] as const).flatMap((visibility) => {
    const who = seen.filter((one) => one.visibility === visibility);
    return who.length === 0
      ? []
      : [`- **${WORDS[visibility]}**: ${namesText(who.map(({ subject }) => subject))}, by ${rulesText(who)}`];
  });
  const mask = label === null ? null : (snapshot.masks.get(relation.name)?.get(label) ?? 'deny');
  return [
    ...(label === null ? [] : [`Label \`${label}\`, mask \`${mask}\`.`, '']),
    lines.length === 0 ? 'No subject of the policy sees it.' : 'Who may see it, asking for itself:',
    '',
    ...lines,
    ...(lines.length === 0 || blind === 0 ? [] : [`- not at all: ${blind} of ${seen.length} subjects`]),
    ...(snapshot.subjects.size > seen.length
      ? [`\nThe first ${seen.length} of ${snapshot.subjects.size} subjects.`]
      : []),
  ].join('\n');
}

interface SubjectVisibility {
  readonly subject: string;
  readonly visibility: Visibility;
  readonly rules: readonly string[];
}

function* visibilities(
  object: CatalogName,
  relation: Relation,
  snapshot: PolicySnapshot,
  catalog: Catalog,
): Generator<SubjectVisibility> {
  const circumstances = { ...NO_CIRCUMSTANCES, now: Date.now() };
  for (const subject of [...snapshot.subjects.keys()].slice(0, MOST_SUBJECTS)) {
    const identity = hypotheticalClaims({ chain: [subject], roles: null }, snapshot);
    const access = effectiveAccess(identity, snapshot, catalog, circumstances);
    const visibility = widestVisibility(relation, object.column, catalog, access);
    const { grants } = reasonsFor(relation.name, identity, access, snapshot, catalog);
    const rules = grants.filter((grant) => grant.counts && covers(grant, object.column)).map(ruleText);
    yield { subject, visibility, rules };
  }
}

function covers({ columns }: GrantReason, column: string | null): boolean {
  return column === null || columns === '*' || columns.includes(column);
}

function ruleText({ rule, rows, unmask }: GrantReason): string {
  const more = [
    ...(rows === null ? [] : [`rows \`${rows}\``]),
    ...(unmask.length === 0 ? [] : [`unmask ${unmask.join(', ')}`]),
  ];
  return `\`${rule}\`${more.length === 0 ? '' : ` (${more.join('; ')})`}`;
}

function rulesText(who: readonly SubjectVisibility[]): string {
  const rules = [...new Set(who.flatMap(({ rules }) => rules))];
  return rules.length > MOST_NAMED ? `${rules.slice(0, MOST_NAMED).join(', ')} …` : rules.join(', ');
}

function namesText(subjects: readonly string[]): string {
  const named = subjects.slice(0, MOST_NAMED).map((subject) => `\`${subject}\``);
  const more = subjects.length - named.length;
  return more === 0 ? named.join(', ') : `${named.join(', ')} and ${more} more`;
}

/** Sensitivity label of a column; null if it has none, or for a whole relation; undefined for an unknown column. */
function labelOf(relation: Relation, column: string | null): string | null | undefined {
  if (column === null) return null;
  const found = [...relation.columns, ...(relation.computed ?? [])].find(({ name }) => name === column);
  return found === undefined ? undefined : (found.sensitivity ?? null);
}
