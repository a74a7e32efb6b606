declare module 'cytoscape-fcose' {
  import type { Ext } from 'cytoscape';

  const fcose: Ext;
  // biome-ignore lint/style/noDefaultExport: the package exports it this way
  export default fcose;
}
