import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { PostgresQuery, prepareCompiler } = require('@cubejs-backend/schema-compiler');

export { PostgresQuery };

/** Cube's compilers of one model, which is JavaScript. */
export async function compilersOf(fileName, content) {
  const repository = {
    localPath: () => import.meta.dirname,
    dataSchemaFiles: async () => [{ fileName, content }],
  };
  // The native half is asked for Jinja templates and for the new planner; a model in JavaScript needs neither.
  const nativeInstance = { newJinjaEngine: () => ({}) };
  const compilers = prepareCompiler(repository, { adapter: 'postgres', nativeInstance });
  await compilers.compiler.compile();
  return compilers;
}
