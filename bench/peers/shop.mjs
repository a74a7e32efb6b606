import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** `<package>@<version>`, as installed. */
export function named(name) {
  const paths = require.resolve.paths(name) ?? [];
  for (const dir of paths) {
    try {
      return `${name}@${JSON.parse(readFileSync(`${dir}/${name}/package.json`, 'utf8')).version}`;
    } catch {
      // the next one
    }
  }
  throw new Error(`${name} is not installed`);
}

/** The literals of one variant of the question; as `bench/compile/question.ts` has them. */
export function literalsOf(variant) {
  return { status: variant % 2 === 0 ? 'paid' : 'open', amount: variant, orders: variant % 7 };
}
