/** One statement of the page, and the lines that say what came of it. */
export interface Example {
  readonly sql: string;
  readonly outcome: readonly string[];
}

const MARK = '→ ';
const FENCE = /^```osl\n([\s\S]*?)^```$/gm;

/** Every example of the page, in order. In a block, blank lines stand between statements. */
export function examplesOf(page: string): readonly Example[] {
  return [...page.matchAll(FENCE)].flatMap((m) =>
    (m[1] ?? '')
      .trim()
      .split(/\n{2,}/)
      .map(exampleOf),
  );
}

function exampleOf(text: string): Example {
  const lines = text.split('\n');
  return {
    sql: lines.filter((l) => !l.startsWith(MARK)).join('\n'),
    outcome: lines.filter((l) => l.startsWith(MARK)).map((l) => l.slice(MARK.length)),
  };
}

/** The page with these outcomes, one for each example, and this table of nodes. */
export function rewritten(page: string, outcomes: readonly (readonly string[])[], tables: string): string {
  let at = 0;
  const filled = page.replace(FENCE, (_, block: string) => {
    const examples = block
      .trim()
      .split(/\n{2,}/)
      .map(exampleOf);
    const texts = examples.map(({ sql }) =>
      [sql, ...(outcomes[at++] ?? []).map((l) => `${MARK}${l}`)].join('\n'),
    );
    return `\`\`\`osl\n${texts.join('\n\n')}\n\`\`\``;
  });
  return `${filled.slice(0, filled.indexOf(TABLE_HEAD))}${TABLE_HEAD}\n${tables}`;
}

const TABLE_HEAD = '| node | is | what it is |';
