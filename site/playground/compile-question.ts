/** Compiles a question as the gateway does, from the texts of a manifest and a policy: the playground's only logic. */
import {
  assertNever,
  compile,
  emit,
  type GovernedPlan,
  type GovernedRuntime,
  literalText,
  QueryError,
  queryError,
  type Slot,
} from 'osl-compiler';
import { type EffectiveAccess, effectiveAccess, isEmpty } from '../../policy/access.js';
import { compileSnapshot } from '../../policy/compile-snapshot.js';
import { NO_CIRCUMSTANCES } from '../../policy/conditions.js';
import type { IdentityClaims } from '../../policy/identity.js';
import { PolicyProblems } from '../../policy/problems.js';
import { type GrantReason, hypotheticalClaims, reasonsFor } from '../../policy/reasons.js';
import type { PolicySnapshot } from '../../policy/snapshot.js';
import { type Diagnostic, ManifestProblems } from '../../src/model/manifest/diagnostic.js';
import { type PolicyFile, parseManifest, parsePolicyDocument } from '../../src/model/manifest/load.js';
import type { Manifest } from '../../src/model/manifest/manifest.js';
import { MOST_CHARACTERS, type Playground } from './state.js';

type Editor = 'question' | 'manifest' | 'policy';

export interface Fault {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  /** Half-open range of UTF-16 offsets in the text; null if the fault has no place. */
  readonly range: readonly [start: number, end: number] | null;
}

/** A statement for Postgres. */
export interface Statement {
  readonly title: string;
  readonly sql: string;
  /** Origin of `$1`, `$2` and so on. */
  readonly parameters: readonly { readonly type: string; readonly from: string }[];
}

export interface MaskedColumn {
  /** `entity.column` */
  readonly column: string;
  readonly label: string | null;
  /** Kind of mask that the policy gives to the label. */
  readonly mask: string | null;
  /** Effective grants that show the column masked, as paths in the policy. */
  readonly grants: readonly string[];
  /** True if another grant of the caller shows the column unmasked in some rows. */
  readonly partly: boolean;
  /** True if the column is part of the result; otherwise only conditions, joins or groups use its masked value. */
  readonly shown: boolean;
}

/** A condition or a minimum group size that a grant sets. */
export interface Restriction {
  readonly grant: string;
  readonly entity: string;
  readonly rows: string | null;
  readonly minGroupSize: number | null;
}

export interface Compiled {
  readonly kind: 'compiled';
  /** In the order in which they run; the last one returns the result. */
  readonly statements: readonly Statement[];
  readonly masked: readonly MaskedColumn[];
  readonly restrictions: readonly Restriction[];
}

export interface Refused {
  readonly kind: 'refused';
  readonly editor: Editor;
  readonly faults: readonly Fault[];
}

export interface PlaygroundResult {
  /** Subjects of the policy with the roles that each may have; empty if the policy is invalid. */
  readonly subjects: readonly { readonly name: string; readonly roles: readonly string[] }[];
  readonly outcome: Compiled | Refused;
}

/**
 * Compiles manifest, policy and question, in this order; the first that is refused ends it. Requires `ready()` of
 * osl-compiler.
 *
 * @param now time of the decision for grants with conditions, ms since the epoch
 */
export function compileQuestion(input: Playground, now: number): PlaygroundResult {
  let editor: Editor = 'manifest';
  let subjects: PlaygroundResult['subjects'] = [];
  try {
    for (const name of ['manifest', 'policy', 'question'] as const) {
      editor = name;
      if (input[name].length > MOST_CHARACTERS)
        throw queryError('tooLarge', { what: 'the text', limit: MOST_CHARACTERS });
    }
    editor = 'manifest';
    const manifest = parseManifest(input.manifest, 'manifest.yaml');
    editor = 'policy';
    const policy = parsePolicyDocument(input.policy, 'policy.yaml');
    const snapshot = snapshotOf(policy, manifest);
    subjects = [...snapshot.subjects].map(([name, { ceiling }]) => ({ name, roles: [...ceiling] }));
    editor = 'question';
    const identity = hypotheticalClaims({ chain: input.chain, roles: input.roles }, snapshot);
    const circumstances = { ...NO_CIRCUMSTANCES, now, surface: 'rest' };
    const access = effectiveAccess(identity, snapshot, manifest.catalog, circumstances);
    if (isEmpty(access)) throw queryError('noAccess', {});
    const plan = compile(input.question, manifest.catalog, access);
    return { subjects, outcome: new Explanation(plan, { identity, snapshot, access, manifest }).compiled() };
  } catch (error) {
    return { subjects, outcome: { kind: 'refused', editor, faults: faultsOf(error, input[editor]) } };
  }
}

function snapshotOf(policy: PolicyFile, { catalog, tenant }: Manifest): PolicySnapshot {
  try {
    return compileSnapshot(policy.document, catalog, tenant);
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    throw new ManifestProblems(policy.diagnostics(error.problems), policy.text);
  }
}

function faultsOf(error: unknown, text: string): readonly Fault[] {
  if (error instanceof ManifestProblems) return error.diagnostics.map((d) => diagnosticFault(d, text));
  if (!(error instanceof QueryError)) throw error;
  const { code, message, hint, position } = error;
  const word = position === null ? '' : (/^[\p{L}\p{N}_.$]+/u.exec(text.slice(position.offset))?.[0] ?? ' ');
  const range = position === null ? null : ([position.offset, position.offset + word.length] as const);
  return [{ code, message, hint, range }];
}

function diagnosticFault({ code, message, hint, range }: Diagnostic, text: string): Fault {
  const starts = [0, ...[...text.matchAll(/\r\n|\n|\r/g)].map(({ index, 0: end }) => index + end.length)];
  const offset = ({ line, column }: Diagnostic['range']['start']): number =>
    (starts[line - 1] ?? text.length) + column - 1;
  return { code, message, hint, range: [offset(range.start), offset(range.end)] };
}

interface Decided {
  readonly identity: IdentityClaims;
  readonly snapshot: PolicySnapshot;
  readonly access: EffectiveAccess;
  readonly manifest: Manifest;
}

/** Describes a governed plan to the author of the policy, who may know all of it. */
class Explanation {
  readonly #plan: GovernedPlan;
  readonly #decided: Decided;

  constructor(plan: GovernedPlan, decided: Decided) {
    this.#plan = plan;
    this.#decided = decided;
  }

  compiled(): Compiled {
    const { facets } = this.#decided.manifest.catalog;
    const named = this.#plan.objects.flatMap((o) => /^osl\.(?:entities|facets)\.(.+)$/.exec(o)?.[1] ?? []);
    // The rows of a facet's entity restrict its passages.
    const entities = new Set(named.flatMap((name) => [name, facets.get(name)?.entity ?? name]));
    return {
      kind: 'compiled',
      statements: this.#statements(),
      masked: this.#plan.maskedColumns.map((column) => this.#masked(column)),
      restrictions: [...entities].flatMap((entity) => this.#restrictions(entity)),
    };
  }

  #statements(): readonly Statement[] {
    const before = this.#plan.runtime.flatMap((runtime) =>
      stepsOf(runtime).map(([title, plan]) => this.#statement(title, plan)),
    );
    return [...before, this.#statement(before.length === 0 ? 'Governed SQL' : 'Result', this.#plan)];
  }

  #statement(title: string, plan: GovernedPlan): Statement {
    const { sql, slots } = emit(plan);
    const from = (slot: Slot): string =>
      slot.kind === 'client' && plan !== this.#plan ? 'the step before' : this.#origin(slot);
    return { title, sql, parameters: slots.map((slot) => ({ type: slot.type, from: from(slot) })) };
  }

  #origin(slot: Slot): string {
    switch (slot.kind) {
      case 'literal':
        return `${JSON.stringify(literalText(slot.value))}${slot.written ? '' : ', from the model or the policy'}`;
      case 'client':
        return `parameter $${slot.index + 1} of the client`;
      case 'attribute': {
        const { access, identity } = this.#decided;
        const values = access.attributeValues(slot.subject, slot.name).join(', ');
        return `attribute ${slot.name} of ${identity.chain[slot.subject] ?? ''}: ${values}`;
      }
      case 'runtime':
        return 'rows of the step before';
      case 'keys':
        return `values of ${slot.column} in the step before`;
      case 'given':
        return `${slot.name}, when it runs`;
      case 'pad':
        return `the tenant's key for hash masks (${slot.domain})`;
      default:
        return assertNever(slot);
    }
  }

  #grants(relation: string): readonly GrantReason[] {
    const { identity, access, snapshot, manifest } = this.#decided;
    return reasonsFor(relation, identity, access, snapshot, manifest.catalog).grants.filter((g) => g.counts);
  }

  #masked(column: string): MaskedColumn {
    const { snapshot, manifest } = this.#decided;
    const [relation = '', ...rest] = column.split('.');
    const name = rest.join('.');
    const declared = manifest.catalog.relations.get(relation);
    const label =
      [...(declared?.columns ?? []), ...(declared?.computed ?? [])].find((c) => c.name === name)
        ?.sensitivity ?? null;
    const granting = this.#grants(relation).filter((g) => g.columns === '*' || g.columns.includes(name));
    const masking = granting.filter((g) => label === null || !g.unmask.includes(label));
    return {
      column,
      label,
      mask: label === null ? null : (snapshot.masks.get(relation)?.get(label) ?? null),
      grants: masking.map((g) => g.rule),
      partly: masking.length < granting.length,
      shown: this.#plan.redactedColumns.includes(column),
    };
  }

  #restrictions(entity: string): readonly Restriction[] {
    return this.#grants(entity).flatMap(({ rule, rows, min_group_size: minGroupSize }) =>
      rows === null && minGroupSize === null ? [] : [{ grant: rule, entity, rows, minGroupSize }],
    );
  }
}

/** Statements that run before the one that returns the result. */
function stepsOf(runtime: GovernedRuntime): readonly (readonly [title: string, plan: GovernedPlan])[] {
  switch (runtime.kind) {
    case 'traversal': {
      const { start, hops, relation } = runtime;
      const titles = relation.hops.map((h) => `${h.from} → ${h.edge} → ${h.to}`);
      const walk = hops.map((plan, i) => [`Hop: ${titles[i] ?? 'repeated'}`, plan] as const);
      return start === null ? walk : [['Keys to start from', start], ...walk];
    }
    case 'retrieval':
      return [runtime.store, runtime.lexical].flatMap((store) =>
        store === null ? [] : [[`Passages of ${store.facet.name}`, store.passages] as const],
      );
    case 'hydration':
      return runtime.stores.map((store) => [`Content of ${store.facet.name}`, store.passages] as const);
    case 'operated':
      return [['Rows for the operators', runtime.rows]];
    default:
      return assertNever(runtime);
  }
}
