import type { ProbableWord } from '../../content/index.js';

/** What the operator is told of a value that is probably a word. It has the value. */
export function wordText(facet: string, { value, label, documents, of }: ProbableWord): string {
  const share = Math.round((100 * documents) / of);
  return (
    `\`${value}\` (${label}) stands in ${share} % of ${of} documents and is replaced there: ` +
    `probably a word; if so, \`exceptions: [${JSON.stringify(value)}]\` of facet \`${facet}\` leaves it`
  );
}
