import { BaseImage, BUILT_IMAGES } from './base-image.js';

/** Run by `npm run build`; done at once where the image is there. The thread that makes it ends with the process. */
await new BaseImage(BUILT_IMAGES, null).ready();
