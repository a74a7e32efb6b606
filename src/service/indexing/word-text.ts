import type { ProbableWord } from '../../content/index.js';

/** Warning about a redacted value that is probably an ordinary word. */
export function wordText(facet: string, { value, label, documents, of }: ProbableWord): string {
  const share = Math.round((100 * documents) / of);
  return (
    `\`${value}\` (${label}) stands in ${share} % of ${of} documents and is replaced there: ` +
    `probably a word; if so, \`exceptions: [${JSON.stringify(value)}]\` of facet \`${facet}\` leaves it`
  );
}
