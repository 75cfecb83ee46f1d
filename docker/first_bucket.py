"""$NIGHTKEEP_BUCKET -> a bucket of this name in the store at $AWS_ENDPOINT_URL. One that is there stays as it is."""

import os
import sys

import boto3
from botocore.exceptions import ClientError

FIRST_REGION = "us-east-1"
THERE = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")


def main() -> int:
    name, region = os.environ["NIGHTKEEP_BUCKET"], os.environ.get("AWS_REGION") or FIRST_REGION
    # S3 refuses the name of its first region as a constraint, and asks for that of any other.
    place = {} if region == FIRST_REGION else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    try:
        boto3.client("s3", region_name=region).create_bucket(Bucket=name, **place)
    except ClientError as failure:
        if failure.response["Error"]["Code"] not in THERE:
            raise
        print(f"bucket {name} is there")
        return 0
    print(f"bucket {name} made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
