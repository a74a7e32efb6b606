import type { EncoderName } from 'osl-compiler';
import { type CheckedArguments, labels, text } from '../../model/facets/arguments.js';
import type { TextRole } from '../embed/embedder.js';

/** The texts that an operator compares passages with: what must be made vectors of before it can run. */
export function encoderTexts(
  operator: EncoderName,
  given: CheckedArguments,
  query: string,
): { readonly texts: readonly string[]; readonly role: TextRole } {
  switch (operator) {
    case 'SIMILARITY':
      return { texts: [text(given, 'reference') ?? query], role: 'query' };
    case 'RANK':
      return { texts: [text(given, 'query') ?? query], role: 'query' };
    case 'CLASSIFY':
    case 'TAG':
      return { texts: textsOfLabels(given).flat(), role: 'document' };
    case 'DEDUP':
    case 'OUTLIER':
    case 'CLUSTER':
      return { texts: [], role: 'document' };
  }
}

/** Of each label its name with its description, and its examples. */
export function textsOfLabels(given: CheckedArguments): readonly (readonly string[])[] {
  return labels(given).map(({ label, description, examples }) => [
    labelText(label, description),
    ...examples,
  ]);
}

/** `card_arrival` reads as words. */
function labelText(label: string, description: string | null): string {
  const words = label.replace(/[_-]+/g, ' ');
  return description === null ? words : `${words}: ${description}`;
}
