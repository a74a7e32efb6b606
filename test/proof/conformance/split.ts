/** One thing that the contract says: a sentence, a list item or a row of a table. */
export interface Unit {
  /** Headings above it, outermost first, without the title of the page. */
  readonly section: readonly string[];
  readonly text: string;
}

/** The units of the contract in order. Code blocks, headings and the heads of tables say nothing of their own. */
export function unitsOf(markdown: string): readonly Unit[] {
  const units: Unit[] = [];
  let section: readonly string[] = [];
  const lines = markdown.split('\n');
  for (const [n, line] of lines.entries()) {
    const heading = /^(#+) (.*)$/.exec(line);
    if (heading !== null) {
      section = [...section.slice(0, (heading[1]?.length ?? 1) - 1), heading[2] ?? ''].filter(Boolean);
    } else if (line.startsWith('|')) {
      const isHead = lines[n + 1]?.startsWith('|---') ?? false;
      if (!isHead && !line.startsWith('|---')) units.push({ section: section.slice(1), text: cells(line) });
    } else {
      const text = line.replace(/^(?:\d+\.|-) /, '').trim();
      for (const sentence of sentences(text)) units.push({ section: section.slice(1), text: sentence });
    }
  }
  return units;
}

function cells(line: string): string {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
    .join(' | ');
}

/** Split at full stops and semicolons that end a clause. */
function sentences(text: string): readonly string[] {
  return text === '' ? [] : text.split(/(?<=(?<!\.\.)[.;])\s+(?=[A-Za-z`'"])/);
}
