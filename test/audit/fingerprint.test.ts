import { createHmac, randomBytes } from 'node:crypto';
import t from 'tap';
import { Fingerprints } from '../../audit/fingerprint.js';
import { fc } from '../support/fast-check.js';

t.test('a fingerprint is the HMAC of the text', async (t) => {
  const key = randomBytes(32);
  const fingerprints = new Fingerprints(key);
  const same = (text: string): void => {
    const wanted = createHmac('sha256', key).update(text).digest('base64url');
    const bytes = Buffer.from(`é${text}é`);
    const ofBytes = fingerprints.ofBytes(bytes, 2, bytes.length - 2);
    if (fingerprints.of(text) !== wanted || ofBytes !== wanted)
      throw new Error(JSON.stringify(text.slice(0, 100)));
  };
  for (const size of [0, 1, 300, 400, 87_000, 88_000, 500_000, 2]) {
    same('x'.repeat(size));
    same('é'.repeat(size));
  }
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 600 }), same), { numRuns: 2_000 });
  t.pass();
});

t.test('keys of any length up to a block', async (t) => {
  for (const length of [0, 1, 63, 64]) {
    const key = randomBytes(length);
    t.equal(new Fingerprints(key).of('a'), createHmac('sha256', key).update('a').digest('base64url'));
  }
  t.throws(() => new Fingerprints(randomBytes(65)), RangeError);
});
