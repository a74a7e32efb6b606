import { identifier } from 'osl-compiler/sql-text';
import { counted, visible } from '../../output.js';
import { sourceText } from './caller-value.js';
import type { ImportedDatabase } from './import-database.js';
import type { ImportNote } from './notes.js';

/** The result of an import, as data for `--json`. */
export function importResult(
  { policy, attributes, notes, leftOut, manifest }: ImportedDatabase,
  files: readonly string[],
) {
  return {
    files,
    roles: Object.entries(policy.roles).map(([role, { grants }]) => ({ role, grants: grants.length })),
    entities: manifest.manifest.entities.size,
    attributes: attributes.map(({ name, source, list }) => ({ name, from: sourceText(source), list })),
    attributes_from_entities: Object.keys(policy.attributes ?? {}),
    imported: ofKind(notes, 'imported').map(({ object, role }) => ({ object, role })),
    refused: [
      ...ofKind(notes, 'refused').map(({ object, role, detail }) => ({ object, role, reason: detail })),
      ...leftOut.map(({ table, reason }) => ({ object: table, role: null, reason })),
    ],
    whole: [...ofKind(notes, 'no row security'), ...ofKind(notes, 'exempt')].map(
      ({ object, role, detail }) => ({
        object,
        role,
        reason: detail,
      }),
    ),
    views: ofKind(notes, 'view').map(({ object, role }) => ({ object, role })),
    changed: ofKind(notes, 'changed').map(({ object, role, detail }) => ({ object, role, reason: detail })),
    nothing: ofKind(notes, 'nothing visible').map(({ object, role, detail }) => ({
      object,
      role,
      reason: detail,
    })),
  };
}

function ofKind(notes: readonly ImportNote[], kind: ImportNote['kind']): readonly ImportNote[] {
  const own = notes.filter((note) => note.kind === kind);
  return [...new Map(own.map((note) => [JSON.stringify(note), note])).values()];
}

/** The same for a person. */
export function importText(imported: ImportedDatabase, files: readonly string[]): string {
  const { roles, entities, attributes, refused, whole, views, changed, nothing } = importResult(
    imported,
    files,
  );
  const policies = new Set(importResult(imported, files).imported.map(({ object }) => object)).size;
  const sections = [
    [
      `Imported ${counted(policies, 'policy', 'policies')} for ${roles.map(({ role }) => role).join(', ') || 'no role'}: ${counted(entities, 'entity', 'entities')}.`,
      `Written: ${files.join(', ')}`,
    ],
    list(
      'Attributes that subjects need, in `subjects` of policy.yaml or from their tokens (docs/identity.md):',
      attributes.map(({ name, from, list }) => `${name}: ${from}${list ? ', a list' : ''}`),
    ),
    list('Not imported, so these roles see less than in the database:', refused.map(line)),
    list('All rows, as in the database:', whole.map(line)),
    list(
      'Views whose rows depend on the caller, as entities over their tables:',
      views.map(({ object, role }) => visible(`${object} (${identifier(role)})`)),
    ),
    list('Columns of views that are masked or left out:', changed.map(line)),
    list('No rows, as in the database, or because of what is not imported:', nothing.map(line)),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

function line({
  object,
  role,
  reason,
}: {
  readonly object: string;
  readonly role: string | null;
  readonly reason: string | null;
}): string {
  return visible(`${object}${role === null ? '' : ` (${identifier(role)})`}: ${reason ?? ''}`);
}

function list(title: string, items: readonly string[]): readonly string[] {
  return items.length === 0 ? [] : [title, ...items.map((item) => `  ${item}`)];
}
