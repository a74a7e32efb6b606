import { appendFileSync } from 'node:fs';
import type { LoadHook } from 'node:module';

/** For `module.register`: notes the URL of each module that is loaded in the file that OSL_TEST_LOADED names. */
export const load: LoadHook = (url, context, next) => {
  appendFileSync(process.env['OSL_TEST_LOADED'] ?? '', `${url}\n`);
  return next(url, context);
};
