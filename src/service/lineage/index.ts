/** Lineage: events of OpenLineage about what is published and what is read, by signed webhooks. */

export { type Lineage, type LineageOptions, namespaceOf, openLineage } from './lineage.js';
