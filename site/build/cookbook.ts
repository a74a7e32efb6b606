/** The recipes: pages of `docs/cookbook/` whose listings are the files of `examples/cookbook/`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FILES = ['policy.yaml', 'policy.test.yaml', 'manifest.yaml'] as const;

/** Names of the recipes. */
export function recipesOf(root: string): readonly string[] {
  return readdirSync(join(root, 'examples', 'cookbook')).toSorted();
}

/**
 * The text of a recipe's page with its listings as the files are.
 *
 * @throws where a file has no place in it
 */
export function recipePage(root: string, recipe: string, text: string): string {
  return FILES.reduce((page, file) => {
    const begin = `<!-- ${file} -->`;
    const from = page.indexOf(begin);
    if (from < 0) throw new Error(`docs/cookbook/${recipe}.md has no place for ${file}`);
    const end = '<!-- end -->';
    const to = page.indexOf(end, from);
    const path = join(root, 'examples', 'cookbook', recipe, file);
    const listing = existsSync(path) ? readFileSync(path, 'utf8').trimEnd() : '';
    return `${page.slice(0, from)}${begin}\n\n\`\`\`yaml\n${listing}\n\`\`\`\n\n${page.slice(to)}`;
  }, text);
}
