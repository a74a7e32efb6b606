/** Commands that README.md shows: lines after a `$`, and what came of them. */
export interface ShownCommand {
  readonly line: string;
  readonly output: string;
}

/** The commands of `osl query` and `osl why` that a page shows with their answers. */
export function commandsOf(page: string): readonly ShownCommand[] {
  const blocks = [...page.matchAll(/^```\n\$ (npx osl (?:query|why) [\s\S]*?)^```$/gm)];
  return blocks.map(([, block = '']) => {
    const lines = block.split('\n');
    const end = lines.findIndex((_, i) => isWhole(lines.slice(0, i + 1).join('\n')));
    return { line: lines.slice(0, end + 1).join('\n'), output: lines.slice(end + 1).join('\n') };
  });
}

/** True if a shell would run `text`, and not wait for more of it. */
function isWhole(text: string): boolean {
  return text.split('"').length % 2 === 1 && !text.endsWith('\\');
}

/** Of an answer what no other set of packages changes: its columns, what it says is masked, errors and hints. */
export function outlineOf({ line, output }: ShownCommand): readonly string[] {
  const lines = output.split('\n');
  const kept = (text: string, i: number): boolean =>
    /^-+(\+-+)*$/.test(lines[i + 1] ?? '') ||
    /^(masked|error|- |osl\.|\s+hint)/.test(text) ||
    (/^\(\d+ rows?\)$/.test(text) && line.includes('limit'));
  return lines.filter(kept).map((text) => text.trim().replace(/\s+/g, ' '));
}
