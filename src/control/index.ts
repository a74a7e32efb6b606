/** What several gateways share, in the schema `osl_control` of one Postgres. */
export {
  type ControlDatabase,
  type ControlOptions,
  type ControlQueries,
  openControl,
  type Row,
} from './database.js';
export { ControlFault, controlFault } from './fault.js';
export { isSharedKey } from './keys.js';
export { type ControlRoles, type Migrated, migrate, requireSchema } from './migrate.js';
export { MIGRATIONS, type Migration } from './migrations.js';
export {
  type Activation,
  type ActivePolicy,
  type Authorship,
  activatePolicy,
  activations,
  activePolicy,
  ControlConflict,
  digestOf,
  type PolicyVersion,
  policyText,
  policyVersions,
  pushPolicy,
  type Seen,
  standing,
  tenantsIn,
} from './policies.js';
export { type PublishedVersion, publishedAfter, publishedId, shareVersions } from './published.js';
export { lastRevocation, revokedAfter, type SharedRevocation, shareRevocation } from './revocations.js';
export { CONTROL_CHANNEL, type Listener, type Listening, listenForChanges } from './signals.js';
export { type ControlPlace, controlUrl } from './url.js';
