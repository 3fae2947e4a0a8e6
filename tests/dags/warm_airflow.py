"""Imported by a Python whose forks run DAGs: what Airflow imports and builds before it runs its first task."""

import asyncio

import airflow.dag_processing.dagbag
import airflow.models.backfill  # noqa: F401
import httpx
from airflow.sdk.execution_time.supervisor import in_process_api_server


async def ask_once() -> None:
    """The first request makes the routes of every version."""
    transport = httpx.ASGITransport(in_process_api_server().app)
    async with httpx.AsyncClient(transport=transport, base_url="http://in-process.invalid") as client:
        await client.get("/health")


asyncio.run(ask_once())
