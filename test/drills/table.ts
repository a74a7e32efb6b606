export interface DrillReport {
  readonly text: string;
  /** False if the drill has found what must not be. */
  readonly passed: boolean;
}

export function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)].join('\n');
}
