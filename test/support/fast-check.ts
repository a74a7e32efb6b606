import fc from 'fast-check';

/**
 * fast-check with a fixed seed, so that a commit is judged alike whenever it is; the nightly run tries others, by
 * `OSL_TEST_SEED`. Every test takes it from here.
 */
export const SEED = Number(process.env['OSL_TEST_SEED'] ?? 20_261_123);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED });

export { fc };
