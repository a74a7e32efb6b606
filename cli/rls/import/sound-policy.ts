import type { PolicyDocument } from '../../../policy/document.js';
import { compileSnapshot, PolicyProblems } from '../../../policy/index.js';
import type { Manifest } from '../../../src/model/manifest/index.js';
import { attributesNamed } from './attributes.js';
import type { ImportNote } from './notes.js';

/** The document without grants that do not compile, such as those that compare values of different types. */
export function withoutFaults(
  document: PolicyDocument,
  manifest: Manifest,
  notes: ImportNote[],
): PolicyDocument {
  try {
    compileSnapshot(document, manifest.catalog);
    return withoutUnused(document);
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    const faulty = new Map(
      error.problems.flatMap(({ path, message }) =>
        path[0] === 'attributes' ? [[String(path[1]), message] as const] : [],
      ),
    );
    const affected = (text: string | undefined): string | null =>
      [...faulty.keys()].find((name) => text?.includes(`attribute('${name}')`) === true) ?? null;
    // Attributes that need a faulty one are faulty as well.
    for (const [name, { rows }] of Object.entries(document.attributes ?? {})) {
      const by = affected(rows);
      if (by !== null && !faulty.has(name)) faulty.set(name, faulty.get(by) ?? '');
    }
    if (faulty.size === 0) throw error;
    const roles = Object.fromEntries(
      Object.entries(document.roles).map(([role, { grants, ...rest }]) => {
        const sound = grants.filter(({ on, rows }) => {
          const by = affected(rows);
          if (by !== null)
            notes.push({
              kind: 'refused',
              object: on,
              role,
              detail: `attribute ${by}: ${faulty.get(by) ?? ''}`,
            });
          return by === null;
        });
        return [role, { ...rest, grants: sound }];
      }),
    );
    const attributes = Object.fromEntries(
      Object.entries(document.attributes ?? {}).filter(([name]) => !faulty.has(name)),
    );
    return withoutFaults({ ...document, attributes, roles }, manifest, notes);
  }
}

function withoutUnused(document: PolicyDocument): PolicyDocument {
  const used = attributesNamedIn(document);
  const { attributes = {}, ...rest } = document;
  const left = Object.entries(attributes).filter(([name]) => used.has(name));
  if (left.length === 0) return rest;
  const { roles, masks, ...head } = rest;
  return { ...head, attributes: Object.fromEntries(left), roles, masks };
}

/** The attributes that grants name, and those that these need. */
export function attributesNamedIn({ roles, attributes = {} }: PolicyDocument): ReadonlySet<string> {
  const filters = Object.values(roles).flatMap(({ grants }) => grants.map(({ rows }) => rows));
  return attributesNamed(filters, (name) => attributes[name]?.rows);
}
