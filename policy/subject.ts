import { attributePattern } from 'osl-compiler';
import { type AttributeValue, attributeScalars, attributeTexts } from './attributes.js';
import type { SubjectDocument } from './document.js';
import { isName } from './is-name.js';
import type { NameResolver } from './names.js';
import type { DocumentPath, ProblemList } from './problems.js';
import type { SubjectPolicy } from './snapshot.js';

export function compileSubject(
  name: string,
  document: SubjectDocument,
  names: NameResolver,
  declared: ReadonlySet<string>,
  problems: ProblemList,
): SubjectPolicy {
  const path: DocumentPath = ['subjects', name];
  if (!isName(name)) problems.add('name', path, { message: 'no token can carry this subject name' });
  const attributes = new Map<string, AttributeValue>();
  for (const [key, value] of Object.entries(document.attributes ?? {})) {
    const read = readAttribute(value);
    if (read !== null) attributes.set(key, read);
    else problems.add('attribute', [...path, 'attributes', key], NO_ATTRIBUTE);
  }
  return Object.freeze({
    ceiling: names.ceiling(document.ceiling, [...path, 'ceiling']),
    adminCeiling: new Set(document.admin ?? []),
    purposes: purposesOf(document.purposes ?? [], declared, [...path, 'purposes'], problems),
    attributes,
    pattern: attributePattern(attributes),
  });
}

const NO_ATTRIBUTE = {
  message: 'an attribute is text, a number, true or false, a list of these, or `{any: true}`',
  hint: 'put a number of more than 15 digits between quotes',
};

function purposesOf(
  names: readonly string[],
  declared: ReadonlySet<string>,
  path: DocumentPath,
  problems: ProblemList,
): ReadonlySet<string> {
  for (const [i, name] of names.entries())
    if (!declared.has(name))
      problems.add('condition', [...path, i], {
        message: `there is no purpose \`${name}\``,
        hint: 'declare it in `purposes`',
      });
  return new Set(names);
}

/** Null where `value` is none; a value is never guessed from something else. */
function readAttribute(value: unknown): AttributeValue | null {
  const scalars = attributeScalars(value);
  if (scalars !== null) return attributeTexts(scalars);
  const isAny = typeof value === 'object' && value !== null && 'any' in value && value.any === true;
  return isAny ? 'any' : null;
}
