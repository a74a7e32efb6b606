import { ready } from 'osl-compiler';
import t from 'tap';
import { compileSnapshot, PolicyProblems } from '../../policy/index.js';
import { parseManifest, parsePolicyDocument } from '../../src/model/manifest/index.js';
import { ARTICLES_MANIFEST, ARTICLES_POLICY } from '../language/forms/articles.js';

/** A role that may read a facet, of which no version hides what it may not read, is refused when the policy loads. */

await ready();

function problemsOf(manifest: string, policy: string): readonly string[] {
  const { catalog } = parseManifest(manifest, 'manifest.yaml');
  try {
    compileSnapshot(parsePolicyDocument(policy, 'policy.yaml').document, catalog);
    return [];
  } catch (error) {
    if (error instanceof PolicyProblems)
      return error.problems.map((p) => `${p.path.join('.')} ${p.code} ${p.hint}`);
    throw error;
  }
}

/** Versions that leave out one label each, and none that leaves out both. */
const APART = ARTICLES_MANIFEST.replace(
  /masked: \{ redact: \[pii, person\][^}]*\}/,
  'without_pii: { redact: [pii] }\n      without_person: { redact: [person] }',
);

t.test('a version that hides enough will do', async (t) => {
  t.same(problemsOf(ARTICLES_MANIFEST, ARTICLES_POLICY), []);
});

t.test('where none hides enough, each role that hears so is named', async (t) => {
  t.not(APART, ARTICLES_MANIFEST);
  const hint = 'unmask more, or declare a version that redacts person and pii';
  t.same(problemsOf(APART, ARTICLES_POLICY), [
    `roles.masked P0116 ${hint}`,
    `roles.regional P0116 ${hint}`,
    `roles.german P0116 ${hint}`,
  ]);
});
