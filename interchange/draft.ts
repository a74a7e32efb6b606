import type { Node } from '@pgsql/types';
import type { Catalog, TypeName } from 'osl-compiler';
import type { GrantDocument, PolicyDocument } from '../policy/document.js';
import { compileSnapshot, PolicyProblems } from '../policy/index.js';
import type { ManifestDocument } from '../src/model/manifest/index.js';
import { legalName, members, safeText, TakenNames } from './names.js';
import { report, type SourceMapping, type SourcePlace } from './source.js';
import { attempt, NoMapping } from './sql-expression.js';

export type MetricBody = NonNullable<ManifestDocument['metrics']>[string];
export type RelationshipBody = NonNullable<ManifestDocument['relationships']>[string];

/** A column to expose. `type` is null until it is read from the source or assumed. */
export interface ColumnDraft {
  readonly name: string;
  readonly physical: string;
  readonly place: SourcePlace;
  description: string | null;
  type: TypeName | null;
  /** Database type in manifest spelling, such as `varchar(20)`; null if it was not read. */
  declared: string | null;
  /** Database type of the column if it is read as text; otherwise null. */
  stored: string | null;
  labels: readonly string[] | null;
  /** Type to assume if the source declares none. */
  fallback: TypeName | null;
  /** The source's type name if it is ambiguous, such as `Integer`. */
  vague: string | null;
  nullable: boolean | null;
  /** Sensitivity label that the source declares; null if it declares none. */
  sensitivity: string | null;
}

/** Writes one end of a relationship in manifest notation. */
export function endText(entity: string, columns: readonly string[]): RelationshipBody['from'] {
  const names = columns.map((column) => `${entity}.${column}`);
  return names.length === 1 ? names.join() : names;
}

/** True if `columns` form the key of `entity`, in any order. */
export function isKeyOf({ key }: Pick<EntityDraft, 'key'>, columns: readonly string[]): boolean {
  return key.length === columns.length && key.every((name) => columns.includes(name));
}

/** A computed column as declared in the source. */
interface ComputingDraft {
  readonly name: string;
  readonly part: SourceMapping;
  readonly description: string | null;
  /** Returns the expression over the entity's columns. @throws NoMapping */
  readonly text: () => string;
}

/** A computed column as written to the manifest. */
interface ComputedDraft {
  readonly name: string;
  readonly expression: string;
  readonly description: string | null;
  readonly place: SourcePlace;
}

/** Table of an entity; `schema` is null if the source does not name it. */
export interface TableDraft {
  readonly connector: string;
  readonly schema: string | null;
  readonly table: string;
}

/** Keys of computed columns that have a counterpart in the manifest. */
const COMPUTED_KEYS: ReadonlySet<string> = new Set([
  ...['name', 'expr', 'expression', 'sql', 'case', 'description'],
]);

/** Columns by name: exactly, or else ignoring case. The first column of a name keeps it. */
class ColumnIndex {
  readonly #exact = new Map<string, ColumnDraft>();
  readonly #folded = new Map<string, ColumnDraft>();

  get(name: string): ColumnDraft | null {
    return this.#exact.get(name) ?? this.#folded.get(name.toLowerCase()) ?? null;
  }

  add(name: string, column: ColumnDraft): void {
    const folded = name.toLowerCase();
    if (!this.#exact.has(name)) this.#exact.set(name, column);
    if (!this.#folded.has(folded)) this.#folded.set(folded, column);
  }
}

/** An entity under construction, shared by all formats. */
export class EntityDraft {
  readonly name: string;
  readonly place: SourcePlace;
  readonly table: TableDraft;
  description: string | null = null;
  key: readonly string[] = [];
  time: string | null = null;
  /** Columns that joins may use, apart from those of the key. */
  readonly links = new Set<string>();
  readonly columns: ColumnDraft[] = [];
  /** Computed fields by lower-case name; metrics can inline them. */
  readonly computed = new Map<string, Node>();
  /** Computed columns that the draft keeps as they are, by lower-case name; metrics can name them. */
  readonly kept = new Map<string, string>();
  /** Lost fields of the source, in lower case, so that their names are not taken for table columns. */
  readonly lost = new Set<string>();
  /** Fields that become computed columns once all columns are known. */
  readonly computing: ComputingDraft[] = [];
  readonly computedColumns: ComputedDraft[] = [];
  readonly #names = new TakenNames();
  readonly #byName = new ColumnIndex();
  readonly #byPhysical = new ColumnIndex();

  constructor(name: string, table: TableDraft, place: SourcePlace) {
    this.name = name;
    this.table = table;
    this.place = place;
  }

  /** Returns the column that the source calls `name`, ignoring case unless two names differ only by case. */
  column(name: string): ColumnDraft | null {
    return this.#byName.get(name);
  }

  physical(name: string): ColumnDraft | null {
    return this.#byPhysical.get(name);
  }

  /**
   * Exposes the upstream column `physical` as `wanted`, or under the nearest valid name, which is reported. The column
   * can then be found by `wanted` or by `physical`.
   *
   * @throws NoMapping if `wanted` cannot be made valid or `physical` is not a valid column name
   */
  add(
    wanted: string,
    physical: string,
    place: SourcePlace,
    more: { readonly description?: string | null; readonly type?: TypeName | null } = {},
  ): ColumnDraft {
    const legal = legalName(wanted);
    if (legal === null) throw new NoMapping(`\`${safeText(wanted)}\` cannot be a name`);
    if (!isPhysical(physical)) throw new NoMapping(`\`${safeText(physical)}\` cannot be a column`);
    const name = this.#names.take(legal);
    const { description = null, type = null } = more;
    const column: ColumnDraft = {
      name,
      physical,
      description,
      place,
      type,
      fallback: null,
      declared: null,
      stored: null,
      labels: null,
      vague: null,
      nullable: null,
      sensitivity: null,
    };
    if (name !== wanted) report(place, 'approximated', `\`${safeText(wanted)}\` is called \`${name}\``);
    this.columns.push(column);
    this.#byName.add(wanted, column);
    this.#byPhysical.add(physical, column);
    return column;
  }

  /** Adds the computed columns in `computing`; those that cannot be converted are reported. */
  settleComputed(): void {
    for (const { name, part, description, text } of this.computing) {
      const made = attempt(() => {
        const legal = legalName(name);
        if (legal === null) throw new NoMapping(`\`${safeText(name)}\` cannot be a name`);
        return { legal, expression: text() };
      });
      if (!made.ok) {
        part.loseAll(`\`${safeText(name)}\` is computed, and does not map: ${made.reason}`);
        continue;
      }
      const { legal, expression } = made.value;
      const own = this.#names.take(legal);
      if (own !== name) report(part.place, 'approximated', `\`${safeText(name)}\` is called \`${own}\``);
      this.computedColumns.push({ name: own, expression, description, place: part.place });
      for (const key of part.keys()) {
        if (!COMPUTED_KEYS.has(key))
          part.lose(key, `the computed column is kept, without \`${safeText(key)}\``);
      }
    }
  }

  /**
   * Sets the entity's key to columns of its table, exposing them if necessary. If any of them cannot be exposed, the
   * entity gets no key.
   */
  setKey(physical: readonly string[], place: SourcePlace): void {
    const columns = attempt(() => physical.map((c) => this.physical(c) ?? this.add(c, c, place)));
    this.key = columns.ok ? columns.value.map((c) => c.name) : [];
  }

  /** Returns the column for `physical`, exposing it if needed and reporting that `what` needs it. @throws NoMapping */
  expose(physical: string, place: SourcePlace, what: string): ColumnDraft {
    const known = this.physical(physical);
    if (known !== null) return known;
    const column = this.add(physical, physical, place);
    report(
      place,
      'approximated',
      `${what} needs column \`${safeText(physical)}\`, so \`${this.name}\` exposes it`,
      'high',
    );
    return column;
  }
}

/** True if `name` is valid for an upstream column. */
export function isPhysical(name: string): boolean {
  return name.length >= 1 && name.length <= 63 && !/[.\u0000]/.test(name);
}

interface NamedValue<T> {
  readonly name: string;
  readonly document: T;
  readonly place: SourcePlace;
}

interface TermDraft {
  readonly term: string;
  readonly refersTo: string;
  readonly synonyms: readonly string[];
  readonly place: SourcePlace;
}

/** Everything that an importer found, before types are assigned. */
export class ImportDraft {
  readonly relationships: NamedValue<RelationshipBody>[] = [];
  readonly terms: TermDraft[] = [];
  readonly entityNames = new TakenNames();
  readonly metricNames = new TakenNames();
  readonly relationshipNames = new TakenNames();
  readonly #terms = new TakenNames();
  readonly #entities = new Map<string, EntityDraft>();
  readonly #metrics = new Map<string, NamedValue<MetricBody>>();

  get entities(): readonly EntityDraft[] {
    return [...this.#entities.values()];
  }

  get metrics(): readonly NamedValue<MetricBody>[] {
    return [...this.#metrics.values()];
  }

  addEntity(entity: EntityDraft): void {
    this.#entities.set(entity.name, entity);
  }

  addMetric(name: string, document: MetricBody, place: SourcePlace, description: string | null = null): void {
    const described = description === null ? document : { description, ...document };
    this.#metrics.set(name, { name, document: described, place });
  }

  metric(name: string): NamedValue<MetricBody> | null {
    return this.#metrics.get(name) ?? null;
  }

  entity(name: string): EntityDraft | null {
    return this.#entities.get(name) ?? null;
  }

  /**
   * Reserves a valid name for `wanted` in `set`, and reports the name if it differs from `wanted`. If no valid name can
   * be made, reports that and returns null.
   */
  named(set: TakenNames, wanted: string, place: SourcePlace): string | null {
    const legal = legalName(wanted);
    if (legal === null) {
      report(place, 'lost', `\`${safeText(wanted)}\` cannot be a name`);
      return null;
    }
    const name = set.take(legal);
    if (name !== wanted) report(place, 'approximated', `\`${safeText(wanted)}\` is called \`${name}\``);
    return name;
  }

  /**
   * Adds words that mean `refersTo`: the first becomes the term, the rest its synonyms. Empty words and the name itself
   * are skipped; words that already have a meaning or are too long are reported.
   */
  words(words: readonly string[], refersTo: string, place: SourcePlace): void {
    const known = refersTo.slice(refersTo.indexOf('.') + 1).toLowerCase();
    const fresh = words.filter((w) => w.trim() !== '' && w.toLowerCase() !== known);
    const free = fresh.filter((w) => !this.#terms.has(w) && w.length <= 200);
    for (const word of fresh.filter((w) => !free.includes(w))) {
      const why = this.#terms.has(word) ? 'means something else already' : 'is longer than 200 characters';
      report(place, 'lost', `the word \`${safeText(word)}\` ${why}`);
    }
    const [term, ...synonyms] = [...new Set(free)];
    if (term === undefined) return;
    for (const word of [term, ...synonyms]) if (!this.#terms.has(word)) this.#terms.take(word);
    this.terms.push({ term, refersTo, synonyms, place });
  }
}

interface GrantDraft {
  readonly role: string;
  readonly grant: GrantDocument;
  readonly place: SourcePlace;
}

/** Roles under construction. A draft policy has no subjects, so no one holds these roles. */
export class PolicyDraft {
  readonly #grants: GrantDraft[] = [];
  readonly #masked: string[] = [];

  /** Declares that columns with `label` show NULL to callers whose grants do not unmask the label. */
  mask(label: string): void {
    this.#masked.push(label);
  }

  add(role: string, grant: GrantDocument, place: SourcePlace): void {
    this.#grants.push({ role, grant, place });
  }

  /** Builds the policy for a catalog. Grants that do not load are reported and left out. */
  policy(tenant: string, catalog: Catalog): PolicyDocument {
    const columns = [...catalog.relations.values()].flatMap((r) => r.columns);
    const labels = this.#masked.filter((label) => columns.some((c) => c.sensitivity === label));
    const masks = members(labels.map((label) => [label, 'null' as const] as const));
    const whole = documentOf(this.#grants, tenant, masks);
    if (policyFault(whole, catalog) === null) return whole;
    const fits = this.#grants.filter(({ role, grant, place }) => {
      const fault = policyFault(documentOf([{ role, grant, place }], tenant, masks), catalog);
      if (fault !== null) report(place, 'lost', `the access policy grants nobody anything: ${fault}`, 'high');
      return fault === null;
    });
    return documentOf(fits, tenant, masks);
  }
}

function documentOf(
  grants: readonly GrantDraft[],
  tenant: string,
  masks: PolicyDocument['masks'],
): PolicyDocument {
  const roles: Record<string, { grants: GrantDocument[] }> = Object.create(null);
  for (const { role, grant } of grants) {
    const known = roles[role];
    if (known === undefined) roles[role] = { grants: [grant] };
    else known.grants.push(grant);
  }
  return { version: 1, tenant, subjects: {}, roles, masks };
}

/** Returns the reason why a policy does not fit a catalog; null if the policy fits. */
export function policyFault(document: PolicyDocument, catalog: Catalog): string | null {
  try {
    compileSnapshot(document, catalog);
    return null;
  } catch (error) {
    if (error instanceof PolicyProblems) return error.problems[0]?.message ?? error.message;
    throw error;
  }
}
