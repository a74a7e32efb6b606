/** OpenLineage events about published datasets and queries, sent as signed webhooks. */

export { type Lineage, type LineageOptions, namespaceOf, openLineage } from './lineage.js';
