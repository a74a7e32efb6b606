import type { Part } from '../part.js';

/** True if `text` contains a template, which is never evaluated. */
export function isTemplate(text: string): boolean {
  return text.includes('{{') || text.includes('{%') || text.includes('{#');
}

/** The description as text. One that contains a template is reported instead of being evaluated. */
export function descriptionOf(part: Part): string | null {
  const text = part.text('description');
  if (text === null || text.trim() === '') return null;
  if (isTemplate(text)) {
    part.note('description', 'lost', 'a template in a description is not evaluated');
    return null;
  }
  return part.cut('description', text, 'the description');
}
