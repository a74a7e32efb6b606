import { readFileSync } from 'node:fs';

/*
 * Loaded by NODE_OPTIONS=--import into a gateway whose clock a test sets: `Date.now` is ahead by the milliseconds in the
 * file that OSL_TEST_CLOCK names, from a tenth of a second after it was written.
 */

const file = process.env['OSL_TEST_CLOCK'];
if (file === undefined) throw new Error('OSL_TEST_CLOCK is not set');
const now = Date.now;
let aheadMs = 0;
Date.now = () => now() + aheadMs;
setInterval(() => {
  aheadMs = Number(readFileSync(file, 'utf8'));
}, 100).unref();
