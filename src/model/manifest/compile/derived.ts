import type { Relation } from 'osl-compiler';
import { checkArguments, InvalidArgument } from '../../facets/arguments.js';
import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { DerivedDocument, ManifestDocument } from '../document.js';
import type { DerivedAttributeSettings } from '../manifest.js';
import { RESERVED } from './columns.js';
import { membersOf, type Problems } from './scope.js';

/** Derived attributes by entity, in file order. */
export function derivedOf(
  document: ManifestDocument,
  relations: ReadonlyMap<string, Relation>,
  problems: Problems,
): ReadonlyMap<string, readonly DerivedAttributeSettings[]> {
  const out = new Map<string, readonly DerivedAttributeSettings[]>();
  for (const [name, e] of membersOf(document.entities)) {
    const relation = relations.get(name);
    if (relation === undefined || e.derived === undefined) continue;
    const taken = new Map(
      [...relation.columns, ...(relation.computed ?? [])].map((c) => [
        c.name.toLowerCase(),
        `column \`${c.name}\``,
      ]),
    );
    const attributes = membersOf(e.derived).map(([attribute, d]) => {
      const path: Path = ['entities', name, 'derived', attribute];
      mustBeFree(attribute, taken, path, problems);
      taken.set(attribute.toLowerCase(), `\`${attribute}\``);
      mustBeAbout(name, d, document, path, problems);
      return attributeOf(attribute, d, path, problems);
    });
    out.set(name, Object.freeze(attributes));
  }
  return out;
}

/** Reports a reserved name, or one that the entity already uses. `taken`: descriptions by lower-case name. */
export function mustBeFree(
  name: string,
  taken: ReadonlyMap<string, string>,
  path: Path,
  problems: Problems,
): void {
  const before = taken.get(name.toLowerCase());
  if (before !== undefined)
    problems.add(CODES.duplicateName, path, `\`${name}\` is also the name of ${before}`, null, true);
  if (RESERVED.has(name.toLowerCase()))
    problems.add(CODES.reserved, path, `\`${name}\` has a meaning of its own in OSL-SQL`, null, true);
}

function mustBeAbout(
  entity: string,
  { facet }: DerivedDocument,
  { facets = {} }: ManifestDocument,
  path: Path,
  problems: Problems,
): void {
  const declared = facets[facet];
  const known = Object.keys(facets).filter((f) => facets[f]?.entity === entity);
  if (declared === undefined) problems.unknown([...path, 'facet'], 'facet', facet, known);
  else if (declared.entity !== entity) {
    const message = `facet \`${facet}\` is about \`${declared.entity}\`, not about \`${entity}\``;
    problems.add(CODES.conflict, [...path, 'facet'], message);
  }
}

function attributeOf(
  name: string,
  d: DerivedDocument,
  path: Path,
  problems: Problems,
): DerivedAttributeSettings {
  const given = { labels: d.labels, min_score: d.min_score, threshold: d.threshold };
  const values = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  try {
    checkArguments(d.operator, values);
  } catch (error) {
    if (!(error instanceof InvalidArgument)) throw error;
    problems.add(CODES.badExpression, path, error.message);
  }
  return Object.freeze({
    name,
    description: d.description ?? null,
    facet: d.facet,
    operator: d.operator,
    arguments: Object.freeze(values),
  });
}
