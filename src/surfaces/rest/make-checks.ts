import { MANIFEST_SCHEMA, POLICY_SCHEMA } from '../../model/manifest/index.js';
import { buildShapeCheck } from '../../model/manifest/schema/check.js';
import { buildReaders } from './bodies/reader.js';
import './bodies/access.js';
import './bodies/authoring.js';
import './bodies/query.js';

/** Run by `npm run build`: precompiles the validators for the manifest, the policy and request bodies. */
for (const schema of [MANIFEST_SCHEMA, POLICY_SCHEMA]) await buildShapeCheck(schema);
await buildReaders();
